import { define } from "../catalogue";

/** Select a Nonprofit: the requester's own nonprofit. */
export const picker = define("picker", {
  title: "Select a Nonprofit",
  lead: "The one you want to be in touch with. You can still send a request to others.",
  current: "Selected now: {name}",
  none: "No nonprofit selected",
  select: "Select {name}",
  selected: "Nonprofit selected",
  selectedBody: "{name} is your nonprofit now.",
  failed: "We could not keep your choice",
});
