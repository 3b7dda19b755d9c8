// before everything that may use it
import "./lib/older-browsers";
// the first style: it says in which order the layers of all styles lie
import "./styles/index.css";
// of pages that stand in index.html
import "./styles/requests.css";
import "./app/routes/public/gate.css";
import "./app/routes/public/home.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { loadAppConfig } from "@/lib/env";
import { startLocale } from "@/messages/locale";
import { App, pageLoaded } from "./app/app";

// Early, so that the footer's address and the API's are there when they are wanted; a failure shows where it is needed.
loadAppConfig().catch(() => undefined);

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");
const start = () =>
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
// The language first: pages read their words while they load. A page that stands in index.html stays until its code is
// there: no loading view in between.
void startLocale()
  .then(() => (document.documentElement.dataset.landing ? pageLoaded() : undefined))
  .then(start);
