/** The five partner cards. */
export interface Partner {
  id: string;
  name: string;
  /** A picture that stands for the partner's work. */
  logo: "basket" | "house" | "care" | "school" | "shop";
  description: string;
  location: string;
  services: readonly string[];
  website: string;
}

export const partners: readonly Partner[] = [
  {
    id: "1",
    name: "Lakeside Food Bank",
    logo: "basket",
    description: "Boxes for a week, packed by neighbors. Nobody is asked for a paper at the door.",
    location: "South Portland, Maine",
    services: ["Food boxes", "Baby food", "Home delivery"],
    website: "https://lakesidefoodbank.example",
  },
  {
    id: "2",
    name: "Harbor Relief Fund",
    logo: "house",
    description: "Pays rent and heating straight to the landlord, so that a bad month does not end in a move.",
    location: "Portland, Maine",
    services: ["Rent support", "Heating", "Emergency relief"],
    website: "https://harborrelief.example",
  },
  {
    id: "3",
    name: "Clinique Bon Repos",
    logo: "care",
    description:
      "A small clinic with a large waiting room. Medicine at cost, and help with the bill of the big hospital.",
    location: "Port-au-Prince, Haiti",
    services: ["Medical bills", "Medicine", "Check-ups for children"],
    website: "https://bonrepos.example",
  },
  {
    id: "4",
    name: "Open Door Learning Fund",
    logo: "school",
    description: "School fees, books and the bus ticket to get there, from first grade to the last exam.",
    location: "Boston, Massachusetts",
    services: ["School tuition", "Books", "Tutoring"],
    website: "https://opendoorlearning.example",
  },
  {
    id: "5",
    name: "Puente Pequeño",
    logo: "shop",
    description: "First tools, first stock, first month of rent for people who start a small business again.",
    location: "Santo Domingo, Dominican Republic",
    services: ["Small business grants", "Bookkeeping lessons", "Mentors"],
    website: "https://puentepequeno.example",
  },
];
