import { ServiceError } from '../../core/service-error.ts'
import type { CliContext, CutFlags } from './define.ts'

/** A command that cuts live service says what it will cut and asks, unless `--yes` or `--dry-run` was given. */
export async function confirmCut(context: CliContext, flags: CutFlags, what: string): Promise<void> {
  if (flags.yes === true || flags.dryRun === true) return
  const { stdin, stderr } = context.process
  if (stdin.isTTY !== true || stderr.isTTY !== true) {
    throw new ServiceError('needs-confirmation', `${what}; not confirmed`)
  }
  const { confirm, isCancel } = await import('@clack/prompts')
  const answer = await confirm({ message: `${what}. Go on?`, initialValue: false, output: stderr })
  if (answer !== true || isCancel(answer))
    throw new ServiceError('needs-confirmation', 'left as it was', { fix: 'Answer yes, or add --yes.' })
}
