// Prints the queries of a Grafana dashboard as recording rules, so that promtool can read them: node dashboard-rules.mjs FILE
import { readFileSync } from 'node:fs'

const dashboard = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const queries = dashboard.panels.flatMap((panel) => panel.targets ?? []).map((target) => target.expr)
if (queries.length === 0) throw new Error('the dashboard asks nothing')
// Grafana substitutes these variables before it sends a query.
const asked = (query) => query.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*')
const rules = queries.map((query, at) => `      - record: dashboard:query_${at}\n        expr: ${JSON.stringify(asked(query))}\n`)
process.stdout.write(`groups:\n  - name: dashboard\n    rules:\n${rules.join('')}`)
