import { define } from "../catalogue";

/** What the five partners do. Their names are proper names: `routes/public/partners.tsx`. */
export const partners = define("partners", {
  "lakeside.description": "Boxes for a week, packed by neighbors. Nobody is asked for a paper at the door.",
  "lakeside.location": "South Portland, Maine",
  "lakeside.service1": "Food boxes",
  "lakeside.service2": "Baby food",
  "lakeside.service3": "Home delivery",
  "harbor.description": "Pays rent and heating straight to the landlord, so that a bad month does not end in a move.",
  "harbor.location": "Portland, Maine",
  "harbor.service1": "Rent support",
  "harbor.service2": "Heating",
  "harbor.service3": "Emergency relief",
  "bonRepos.description":
    "A small clinic with a large waiting room. Medicine at cost, and help with the bill of the big hospital.",
  "bonRepos.location": "Port-au-Prince, Haiti",
  "bonRepos.service1": "Medical bills",
  "bonRepos.service2": "Medicine",
  "bonRepos.service3": "Check-ups for children",
  "openDoor.description": "School fees, books and the bus ticket to get there, from first grade to the last exam.",
  "openDoor.location": "Boston, Massachusetts",
  "openDoor.service1": "School tuition",
  "openDoor.service2": "Books",
  "openDoor.service3": "Tutoring",
  "puente.description": "First tools, first stock, first month of rent for people who start a small business again.",
  "puente.location": "Santo Domingo, Dominican Republic",
  "puente.service1": "Small business grants",
  "puente.service2": "Bookkeeping lessons",
  "puente.service3": "Mentors",
});
