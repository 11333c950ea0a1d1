import { settingsOf } from '../../src/apps/commands/settings.ts'
import { configSchema } from '../../src/apps/config.ts'
import { startExecutionAlone } from '../../src/apps/execution-alone.ts'
import { runUntilSignal } from '../../src/apps/run-until-signal.ts'
import { createManualClock } from '../../src/core/clock.ts'
import { loadConfig } from '../../src/host/config-file.ts'
import { silentLogger } from '../../src/host/logger.ts'
import { secureRandom } from '../../src/host/random.ts'

/** `sluice execution` as a process of its own whose time runs a hundred times as fast. Configured by the environment. */
const FASTER = 100
const STEP_MS = 5

const { env } = process
const loaded = await loadConfig({ schema: configSchema, env, file: undefined })
const clock = createManualClock(Date.now())
const running = setInterval(() => void clock.advanceAsync(STEP_MS * FASTER), STEP_MS)
const settings = settingsOf(loaded, env['STATE_FOLDER'] ?? '')
await runUntilSignal(process, silentLogger, () =>
  startExecutionAlone(settings, { log: silentLogger, clock, random: secureRandom, env }),
)
clearInterval(running)
