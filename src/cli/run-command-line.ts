import { type ApplicationContext, proposeCompletions, run } from '@stricli/core'
import { createApplication } from './application.ts'
import type { CliContext } from './define.ts'
import { exitCodeOf, formatError } from './errors.ts'
import { wantsJson } from './help-text.ts'
import { readRemote } from './remote/target.ts'

/** Runs a command line. The flags about the remote process are read before the command, since every command has them. */
export async function runCommandLine(argv: readonly string[], context: ApplicationContext & CliContext): Promise<void> {
  const { process } = context
  // Called by the completion script of the shell.
  if (argv[0] === '__complete') {
    const application = createApplication(argv)
    for (const { completion } of await proposeCompletions(application, argv.slice(1), context))
      process.stdout.write(`${completion}\n`)
    return
  }
  try {
    const { words, remote } = readRemote(argv, process.env)
    await run(createApplication(words), words, { ...context, remote })
  } catch (error) {
    process.stderr.write(`${formatError(error, wantsJson(argv))}\n`)
    process.exitCode = exitCodeOf(error)
  }
}
