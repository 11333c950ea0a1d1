import { createInterface } from 'node:readline/promises'
import { ServiceError } from '../../core/error.ts'
import type { CliContext, CutFlags } from '../define.ts'

/** A command that cuts live service says what it will cut and asks for a typed yes, unless `--yes` or `--dry-run` was given. */
export async function confirmCut(context: CliContext, flags: CutFlags, what: string): Promise<void> {
  if (flags.yes === true || flags.dryRun === true) return
  const { stdin, stderr } = context.process
  if (stdin.isTTY !== true || stderr.isTTY !== true) {
    throw new ServiceError('needs-confirmation', `${what}; not confirmed`)
  }
  const prompt = createInterface({ input: stdin, output: stderr })
  try {
    const response = await prompt.question(`${what}.\nType yes to go on: `)
    if (response.trim().toLowerCase() === 'yes') return
  } finally {
    prompt.close()
  }
  throw new ServiceError('needs-confirmation', 'left as it was', { fix: 'Type yes, or add --yes.' })
}
