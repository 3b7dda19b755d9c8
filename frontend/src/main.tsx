// before everything that may use it
import "./lib/older-browsers";
// must be the first style: it sets the order of all cascade layers
import "./styles/index.css";
// styles of the prerendered pages
import "./styles/requests.css";
import "./app/routes/public/gate.css";
import "./app/routes/public/home.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { loadAppConfig } from "@/lib/env";
import { forgetOldAnswers } from "@/lib/stored";
import { startLocale } from "@/messages/locale";
import { App, pageLoaded } from "./app/app";

// Early, so that the footer's address and the API's URL are ready; a failure shows where they are needed.
loadAppConfig().catch(() => undefined);

forgetOldAnswers();

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");
const start = () =>
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
// The language first, because pages read their texts while loading. A prerendered page stays until its code is loaded,
// without a loading view in between.
void startLocale()
  .then(() => (document.documentElement.dataset.landing ? pageLoaded() : undefined))
  .then(start);
