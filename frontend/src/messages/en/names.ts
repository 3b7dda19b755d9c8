import { define } from "../catalogue";

/**
 * Names that the database gives: kinds of help and reasons of a denial, by their English words. Only the other languages need
 * this list, so no page loads it: see `localName`.
 */
export const names = define("names", {
  "Food Assistance": "Food Assistance",
  "Groceries, hot meals, baby food": "Groceries, hot meals, baby food",
  "Rent Support": "Rent Support",
  "Rent, deposit, electricity or water": "Rent, deposit, electricity or water",
  "Medical Aid": "Medical Aid",
  "Doctor, medicine, hospital bills": "Doctor, medicine, hospital bills",
  "School Tuition": "School Tuition",
  "Fees, books, uniforms": "Fees, books, uniforms",
  "Small Business Help": "Small Business Help",
  "Tools, stock, a small grant": "Tools, stock, a small grant",
  "Medical Support": "Medical Support",
  "Educational Supplies": "Educational Supplies",
  "Housing Aid": "Housing Aid",
  "Small Business Grants": "Small Business Grants",
  "Emergency Relief": "Emergency Relief",
  "Food & Nutrition": "Food & Nutrition",
  Education: "Education",
  Healthcare: "Healthcare",
  Housing: "Housing",
  Environment: "Environment",
  Technology: "Technology",
  "No fixed address": "No fixed address",
  "Funding limit reached": "Funding limit reached",
  "Outside what this program covers": "Outside what this program covers",
  "Outside the area served": "Outside the area served",
  "Needed documents were not available": "Needed documents were not available",
  "Already helped through another request": "Already helped through another request",
  "No capacity at this time": "No capacity at this time",
  "The organization closed": "The organization closed",
  Other: "Other",
  "Other reason": "Other reason",
});
