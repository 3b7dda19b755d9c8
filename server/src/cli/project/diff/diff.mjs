// Prints the SQL that turns the database BASE into the database TARGET, using @pgkit/migra. Schemas are JSON lists: with INCLUDED
// only these are compared, otherwise all but EXCLUDED. In MANAGED schemas only triggers and policies are compared; the rest
// belongs to the platform.
import { createRequire } from "node:module";
import process from "node:process";

const require = createRequire(process.env.MIGRA_FROM);
const { createClient, sql } = require("@pgkit/client");
const { Migration } = require("@pgkit/migra");

const list = (name) => JSON.parse(process.env[name]);
const included = list("INCLUDED");
const excluded = list("EXCLUDED");
const managed = list("MANAGED");
const ofExtensions = ["pg_catalog", "extensions", "pgmq", "tiger", "topology"];

const base = createClient(process.env.BASE);
const target = createClient(process.env.TARGET);

async function compare(options, add) {
  const migration = await Migration.create(base, target, { ...options, ignore_extension_versions: true });
  migration.set_safety(false);
  add(migration);
  return migration.sql;
}

const everything = (migration) => migration.add_all_changes(true);
const attached = (migration) => {
  const { changes } = migration;
  migration.add(changes.triggers({ drops_only: true }));
  migration.add(changes.rlspolicies({ drops_only: true }));
  migration.add(changes.rlspolicies({ creations_only: true }));
  migration.add(changes.triggers({ creations_only: true }));
};
const extensions = (migration) => {
  migration.add(migration.changes.schemas({ creations_only: true }));
  migration.add_extension_changes();
};

const steps = included.length
  ? included.map((schema) => [{ schema }, managed.includes(schema) ? attached : everything])
  : [
      ...ofExtensions.map((schema) => [{ schema }, extensions]),
      [{ exclude_schema: [...managed, ...ofExtensions, ...excluded] }, everything],
      ...managed.map((schema) => [{ schema }, attached]),
    ];

try {
  // With an empty search path, names in expressions are printed with their schemas.
  await base.query(sql`set search_path = ''`);
  await target.query(sql`set search_path = ''`);
  let text = "";
  for (const [options, add] of steps) {
    text += await compare(options, add);
  }
  process.stdout.write(text);
} catch (error) {
  console.error(error.message ?? error);
  process.exitCode = 1;
} finally {
  await Promise.all([base.end(), target.end()]);
}
