/**
 * Measures the readability of our texts by a formula per language, or by the length of sentences and words if there is
 * none. Fails above the limits. `npm run check` runs it.
 */
import { readFileSync } from "node:fs";
import { formatter } from "@lingui/format-po";
import { formsOf } from "./words.mjs";

const po = formatter({ lineNumbers: false, printLinguiId: false, explicitIdAsDefault: true });

/** Words in a sentence. */
const LONGEST = 30;

const vowels = (pattern) => (word) => Math.max(1, (word.match(pattern) ?? []).length);
const english = (word) => {
  const spoken = word.replace(/(?:[^laeiouy]es|[^laeiouydt]ed|[^laeiouy]e)$/, "").replace(/^y/, "");
  return Math.max(1, (spoken.match(/[aeiouy]{1,2}/g) ?? []).length);
};

/** Each with its limit and its meaning. */
const LANGUAGES = {
  en: {
    formula: "Flesch-Kincaid grade",
    score: ({ perSentence, syllables }) => 0.39 * perSentence + 11.8 * syllables - 15.59,
    syllables: english,
    most: 5,
  },
  es: {
    formula: "Szigriszt-Pazos",
    score: ({ perSentence, syllables }) => 206.835 - 62.3 * syllables - perSentence,
    syllables: vowels(/[aeiouáéíóúü]+/g),
    least: 70,
  },
  fr: {
    formula: "Kandel-Moles",
    score: ({ perSentence, syllables }) => 207 - 1.015 * perSentence - 73.6 * syllables,
    syllables: vowels(/[aeiouyàâéèêëîïôùûüœ]+/g),
    least: 68,
  },
  ht: {
    formula: "letters in a word",
    score: ({ letters }) => letters,
    syllables: vowels(/[aeiouèò]+/g),
    most: 4,
  },
};

/** The sentences of a message; places count as one word, a label without a full stop is none. */
const sentencesOf = (message) =>
  message
    .replace(/\{\w+\}/g, "Anna")
    .split(/(?<=[.!?:])\s+/)
    .filter((sentence) => /[.!?]$/.test(sentence.trim()));
const wordsOf = (sentence) => sentence.toLowerCase().match(/\p{L}[\p{L}’']*/gu) ?? [];

let failed = false;
for (const [language, { formula, score, syllables, most, least }] of Object.entries(LANGUAGES)) {
  const filename = new URL(`../src/messages/po/${language}.po`, import.meta.url).pathname;
  const catalogue = await po.parse(readFileSync(filename, "utf8"), { locale: language, sourceLocale: "en", filename });
  const sentences = Object.entries(catalogue).flatMap(([key, { translation }]) =>
    Object.values(
      [formsOf(translation ?? "")].flatMap((forms) => (typeof forms === "string" ? [forms] : Object.values(forms))),
    )
      .flatMap(sentencesOf)
      .map((sentence) => ({ key, sentence, words: wordsOf(sentence) })),
  );
  const words = sentences.flatMap((entry) => entry.words);
  const perSentence = words.length / sentences.length;
  const sum = (of) => words.reduce((total, word) => total + of(word), 0) / words.length;
  const value = score({ perSentence, syllables: sum(syllables), letters: sum((word) => word.length) });
  const good = (most === undefined || value <= most) && (least === undefined || value >= least);
  const limit = most === undefined ? `at least ${least}` : `at most ${most}`;
  console.log(`${language}: ${formula} ${value.toFixed(1)} (${limit}), ${perSentence.toFixed(1)} words in a sentence`);
  const long = sentences.filter((entry) => entry.words.length > LONGEST);
  for (const { key, sentence, words: many } of long)
    console.error(`${language} ${key}: ${many.length} words: ${sentence}`);
  if (!good || long.length > 0) failed = true;
}
if (failed) process.exit(1);
