import { existsSync } from 'node:fs'
import { ServiceError } from '../../../../core/error.ts'
import { writeFileAtomic } from '../../../../platform/files/atomic.ts'
import { configSchema } from '../../../../processes/compose/config/config.ts'
import { exampleConfig } from '../../../../processes/compose/config/example.ts'
import { DEFAULT_CONFIG } from '../../../../processes/compose/config/settings.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { printJson, write } from '../../../output/print.ts'

/** Writes a config file that lists every option, with the defaults commented out. */
export async function init(this: CliContext, flags: CommonFlags & { host?: string; force?: boolean }): Promise<void> {
  const file = flags.config ?? DEFAULT_CONFIG
  if (existsSync(file) && flags.force !== true) {
    throw new ServiceError('already-exists', `${file} already exists`, {
      fix: 'Edit it, or replace it with --force.',
    })
  }
  const host = flags.host ?? (await askHost(this))
  const problem = configSchema.shape.host.safeParse(host).error?.issues[0]
  if (problem !== undefined) throw new ServiceError('invalid-value', `"${host}" is not a host name: ${problem.message}`)
  await writeFileAtomic(file, exampleConfig({ host }), { mode: 0o600 })
  if (flags.json === true) printJson(this, { file, host })
  else write(this, `${file} written (mode 0600); check it with: sluice config check`)
}

async function askHost(context: CliContext): Promise<string> {
  if (context.process.stdin.isTTY !== true || context.process.stderr.isTTY !== true) return '127.0.0.1'
  const { isCancel, text } = await import('@clack/prompts')
  const response = await text({
    message: 'Which host name do customers connect to?',
    placeholder: 'rpc.example.net',
    defaultValue: '127.0.0.1',
    output: context.process.stderr,
  })
  if (isCancel(response)) throw new ServiceError('usage', 'cancelled, nothing written')
  return response
}
