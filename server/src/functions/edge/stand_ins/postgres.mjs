// A client of PostgreSQL with the API of deno.land/x/postgres (jsr:@db/postgres), over the package pg of npm.
import pg from "npm:pg@8";

// Integers of 64 bits are BigInts, as there.
const types = {
  getTypeParser: (oid, format) => (oid === 20 && format !== "binary" ? BigInt : pg.types.getTypeParser(oid, format)),
};
const camel = (name) => name.replace(/_+(.)/g, (_, letter) => letter.toUpperCase());

const settings = (given) => {
  if (given === undefined) return { connectionString: Deno.env.get("SUPABASE_DB_URL") };
  if (typeof given === "string") return { connectionString: given };
  const { hostname: host, user, password, database, port, tls } = given;
  const ssl = tls?.enabled ? { rejectUnauthorized: Boolean(tls.enforce) } : undefined;
  return { host, user, password, database, port: port && Number(port), ssl };
};

// A template with values, a text with arguments, or both in an object.
const parsed = (first, rest) => {
  if (Array.isArray(first)) return { text: first.reduce((text, part, n) => `${text}$${n}${part}`), args: rest };
  return typeof first === "string" ? { text: first, args: rest[0] } : first;
};

// Arguments may have names: `$NAME`, in any case.
const numbered = (text, args) => {
  if (!args || Array.isArray(args)) return { text, values: args ?? [] };
  const byName = new Map(Object.entries(args).map(([name, value]) => [name.toLowerCase(), value]));
  const values = [];
  const withNumbers = text.replace(/\$([a-z_]\w*)/gi, (_, name) => `$${values.push(byName.get(name.toLowerCase()))}`);
  return { text: withNumbers, values };
};

export class PostgresError extends Error {
  constructor(fields) {
    super(fields.message);
    this.name = "PostgresError";
    this.fields = fields;
  }
}

class Queries {
  async _run(first, rest, rowMode) {
    const { text, args, fields, camelCase, camelcase } = parsed(first, rest);
    try {
      const answer = await this._client().query({ ...numbered(text, args), rowMode, types });
      const { rows, rowCount, command, fields: columns } = Array.isArray(answer) ? answer.at(-1) : answer;
      const names = fields ?? (camelCase || camelcase ? columns.map((column) => camel(column.name)) : undefined);
      const named = (row) => Object.fromEntries(Object.values(row).map((value, n) => [names[n], value]));
      const columnNames = columns?.map((column) => column.name);
      return { rows: names && !rowMode ? rows.map(named) : rows, rowCount, command, columns: columnNames, warnings: [] };
    } catch (error) {
      throw error?.code && error?.severity ? new PostgresError(error) : error;
    }
  }
  queryObject(first, ...rest) {
    return this._run(first, rest, undefined);
  }
  queryArray(first, ...rest) {
    return this._run(first, rest, "array");
  }
  createTransaction() {
    return new Transaction(this);
  }
}

export class Transaction extends Queries {
  constructor(queries) {
    super();
    this._queries = queries;
  }
  _client() {
    return this._queries._client();
  }
  begin() {
    return this.queryArray("BEGIN");
  }
  commit() {
    return this.queryArray("COMMIT");
  }
  rollback() {
    return this.queryArray("ROLLBACK");
  }
}

export class Client extends Queries {
  constructor(given) {
    super();
    this._settings = settings(given);
  }
  _client() {
    if (!this._connected) throw new Error("The client is not connected");
    return this._connected;
  }
  get connected() {
    return Boolean(this._connected);
  }
  async connect() {
    if (this._connected) return;
    const client = new pg.Client(this._settings);
    await client.connect();
    this._connected = client;
  }
  async end() {
    await this._connected?.end();
    this._connected = undefined;
  }
}

export class PoolClient extends Queries {
  constructor(taken) {
    super();
    this._taken = taken;
  }
  _client() {
    return this._taken;
  }
  release() {
    this._taken.release();
  }
  [Symbol.dispose]() {
    this.release();
  }
}

export class Pool {
  constructor(given, size) {
    this.size = size;
    this._pool = new pg.Pool({ ...settings(given), max: size });
    // Without a listener, a lost idle connection would end the process.
    this._pool.on("error", () => {});
  }
  async connect() {
    return new PoolClient(await this._pool.connect());
  }
  get available() {
    return this._pool.idleCount;
  }
  end() {
    return this._pool.end();
  }
}
