import { startServe } from '../../../../processes/serve.ts'
import type { CliContext, ServiceFlags } from '../../../define.ts'
import { serveUntilSignal } from './serve-until-signal.ts'

export function serve(this: CliContext, flags: ServiceFlags & { demo?: boolean }): Promise<void> {
  return serveUntilSignal(this, flags, (settings, deps) =>
    startServe(
      settings,
      { demo: flags.demo ?? settings.loaded.file === undefined },
      {
        ...deps,
        showCard: (card) => this.process.stdout.write(`\n${card}\n`),
      },
    ),
  )
}
