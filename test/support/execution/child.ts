import { createManualClock } from '../../../src/core/clock.ts'
import { loadConfig } from '../../../src/platform/config/file.ts'
import { secureRandom } from '../../../src/platform/process/random.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { configSchema } from '../../../src/processes/compose/config/config.ts'
import { settingsOf } from '../../../src/processes/compose/config/settings.ts'
import { runUntilSignal } from '../../../src/processes/compose/process/run-until-signal.ts'
import { startExecutionProcess } from '../../../src/processes/execution.ts'

/** `sluice execution` as a process of its own whose time runs a hundred times as fast. Configured by the environment. */
const FASTER = 100
const STEP_MS = 5

const { env } = process
const loaded = await loadConfig({ schema: configSchema, env, file: undefined })
const clock = createManualClock(Date.now())
const running = setInterval(() => void clock.advanceAsync(STEP_MS * FASTER), STEP_MS)
const settings = settingsOf(loaded, env['STATE_FOLDER'] ?? '')
await runUntilSignal(process, silentLogger, () =>
  startExecutionProcess(settings, {
    ...{ log: silentLogger, clock, random: secureRandom, env },
    readSettings: async () => settings,
  }),
)
clearInterval(running)
