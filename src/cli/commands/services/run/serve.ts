import { loadSettings } from '../../../../processes/compose/config/settings.ts'
import { startAll } from '../../../../processes/serve.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { serveUntilSignal } from './serve-until-signal.ts'

export function serve(this: CliContext, flags: CommonFlags & { demo?: boolean }): Promise<void> {
  return serveUntilSignal(this, flags, (settings, deps) =>
    startAll(
      settings,
      { demo: flags.demo ?? settings.loaded.file === undefined },
      {
        ...deps,
        readSettings: () => loadSettings(this, flags),
        showCard: (card) => this.process.stdout.write(`\n${card}\n`),
      },
    ),
  )
}
