import { define } from "../catalogue";

/** Choosing and sending files: sections 5, 8 and 9 of the specification. */
export const files = define("files", {
  documents: "Documents",
  takePhoto: "Take a photo",
  choose: "Choose files",
  chooseOne: "Choose a file",
  chosen: "Chosen files",
  limits: "{types}. Up to {size} MB each, up to {count} files.",
  sent: "{size}, {percent}% sent",
  arrived: "{size}, arrived",
  removeFile: "Remove {file}",
  invalidType: "Invalid file type",
  invalidTypeBody: "{file} is not an accepted file type.",
  tooLarge: "File too large",
  tooLargeBody: "{file} exceeds the maximum file size of {size}MB.",
  tooMany: "Too many files",
  tooManyBody: "You can only upload a maximum of {count} files.",
  noneSelected: "No files selected",
  noneSelectedBody: "Please select at least one document to upload.",
  notTaken: "Files that were not taken",
  putAway: "Put the note on {file} away",
  uploaded: "Documents uploaded successfully",
  uploadedBody: "{count} document(s) have been uploaded.",
  uploadFailed: "Upload failed",
});
