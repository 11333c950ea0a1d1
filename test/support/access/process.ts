import { join } from 'node:path'
import { parseAccessOptions } from '../../../src/access/options.ts'
import { startAccess } from '../../../src/access/service.ts'
import { openStore } from '../../../src/access/store/open.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { secureRandom } from '../../../src/platform/process/random.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'

/**
 * A process on a store, to be killed by a test: admits calls of the token it reads from standard input in a loop, and prints every few milliseconds the time and
 * the number of calls admitted so far.
 */
const [, , folder = ''] = process.argv
const secret = await new Promise<string>((resolve) =>
  process.stdin.once('data', (bytes: Buffer) => resolve(bytes.toString('ascii').trim())),
)
const store = await openStore(
  {
    location: { engine: 'sqlite', file: join(folder, 'access.db') },
    audit: { file: join(folder, 'audit.log'), mirror: 'this machine', toolVersion: '1.2.3' },
    check: 'quick',
  },
  { clock: systemClock, random: secureRandom, log: silentLogger },
)
const access = await startAccess(parseAccessOptions(), {
  store,
  log: silentLogger,
  clock: systemClock,
  random: secureRandom,
  registry: createMetricsRegistry(),
  lifecycle: { degraded() {}, recovered() {} },
  env: {},
})
let admitted = 0
setInterval(() => {
  const caller = access.authenticate({ token: secret }, 'bundle', systemClock.nowMs())
  for (let count = 0; caller.ok && count < 5; count++) {
    if (access.admit(caller, { interface: 'rpc', method: 'getSlot' }).ok) admitted += 1
  }
  process.stdout.write(`${performance.timeOrigin + performance.now()} ${admitted}\n`)
}, 5)
