import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { loadAppConfig } from "@/lib/env";
import { App } from "./app/app";
import "./styles/index.css";

// Early, so that the footer's address and the API's are there when they are wanted; a failure shows where it is needed.
loadAppConfig().catch(() => undefined);

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
