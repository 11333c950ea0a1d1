import { createInterface } from 'node:readline/promises'
import { ServiceError } from '../../core/error.ts'
import type { CliContext, ConfirmFlags } from '../define.ts'

/** Asks for a typed yes before a command interrupts live service, unless `--yes` or `--dry-run` is given. */
export async function confirmCut(context: CliContext, flags: ConfirmFlags, what: string): Promise<void> {
  if (flags.yes === true || flags.dryRun === true) return
  const { stdin, stderr } = context.process
  if (stdin.isTTY !== true || stderr.isTTY !== true) {
    throw new ServiceError('needs-confirmation', `${what}; not confirmed`)
  }
  const prompt = createInterface({ input: stdin, output: stderr })
  try {
    const response = await prompt.question(`${what}.\nType yes to continue: `)
    if (response.trim().toLowerCase() === 'yes') return
  } finally {
    prompt.close()
  }
  throw new ServiceError('needs-confirmation', 'not confirmed, nothing changed', { fix: 'Type yes, or add --yes.' })
}
