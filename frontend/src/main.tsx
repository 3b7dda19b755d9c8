// first: it says in which order the layers of all styles lie
import "./styles/index.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { loadAppConfig } from "@/lib/env";
import { App } from "./app/app";

// Early, so that the footer's address and the API's are there when they are wanted; a failure shows where it is needed.
loadAppConfig().catch(() => undefined);

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
