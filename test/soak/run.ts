import { parseArgs } from 'node:util'
import { soak } from './soak.ts'
import { verdictOf } from './verdict.ts'

/** `npm run soak`: half an hour, two hundred clients. Prints the report as one line of JSON, and exits with 1 on a violation. */
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    clients: { type: 'string', default: '200' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
  },
})
const seconds = Number(values.minutes) * 60
const clients = Number(values.clients)
const seed = Number(values.seed)
if (!(seconds > 0 && seconds <= 24 * 3600) || !(clients > 0 && clients <= 2000) || !Number.isSafeInteger(seed)) {
  process.stderr.write('usage: npm run soak -- [--minutes 30] [--clients 200] [--seed N]\n')
  process.exit(2)
}
const isTerminal = process.stderr.isTTY
const report = await soak({
  seconds,
  clients,
  seed,
  onProgress: (line) => process.stderr.write(isTerminal ? `\r${line}   ` : ''),
})
const broken = verdictOf(report)
process.stdout.write(`${isTerminal ? '\n' : ''}${JSON.stringify({ ...report, broken })}\n`)
if (broken.length > 0) process.exitCode = 1
