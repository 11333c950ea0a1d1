import { isUnconfigured } from '../../../../processes/compose/config/served.ts'
import { startServe } from '../../../../processes/serve.ts'
import type { CliContext, ServiceFlags } from '../../../define.ts'
import { serveUntilSignal } from './serve-until-signal.ts'

export function serve(this: CliContext, flags: ServiceFlags & { demo?: boolean }): Promise<void> {
  return serveUntilSignal(this, flags, (settings, deps) =>
    startServe(
      settings,
      { demo: flags.demo ?? isUnconfigured(settings.loaded) },
      {
        ...deps,
        showCard: (card) => this.process.stdout.write(`\n${card}\n`),
      },
    ),
  )
}
