import { terms } from "@/messages/en/content/legal";
import { LegalPage } from "./legal-page";

export function Component() {
  return <LegalPage text={terms} />;
}
