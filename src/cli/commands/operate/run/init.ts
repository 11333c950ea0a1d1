import { existsSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { ServiceError } from '../../../../core/error.ts'
import { loadConfig } from '../../../../platform/config/file.ts'
import { writeFileAtomic } from '../../../../platform/files/atomic.ts'
import { openAccessStore } from '../../../../processes/compose/access/open-store.ts'
import { configSchema } from '../../../../processes/compose/config/config.ts'
import { exampleConfig } from '../../../../processes/compose/config/example.ts'
import {
  DEFAULT_CONFIG,
  defaultState,
  namedStateOf,
  settingsOf,
} from '../../../../processes/compose/config/settings.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { printJson, write } from '../../../output/print.ts'

/** Writes a config file that lists every option, with the defaults commented out, and makes the access store. */
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
  const state = stateOf(this, flags)
  await writeFileAtomic(file, exampleConfig({ host, state: state?.written }), { mode: 0o600 })
  if (state !== undefined) await makeStore(this, file, state.path)
  if (flags.json === true) return printJson(this, { file, host, state: state?.path ?? null })
  write(this, `${file} written (mode 0600); check it with: sluice config check`)
  if (state !== undefined) write(this, `access store in ${state.path}; next: sluice customer add NAME, or sluice serve`)
}

type StateOfInit = { readonly path: string; readonly written: string | undefined }

/**
 * The state folder to make the store in, and its value in the file. A config file elsewhere is for a process elsewhere: without `--state` its folder is
 * not known.
 */
function stateOf(context: CliContext, flags: CommonFlags): StateOfInit | undefined {
  const named = namedStateOf(context, flags)
  if (named === undefined) return flags.config === undefined ? { path: defaultState(), written: undefined } : undefined
  const folder = dirname(resolve(flags.config ?? DEFAULT_CONFIG))
  const below = relative(folder, named)
  return { path: named, written: below === '' || below.startsWith('..') ? named : below }
}

async function makeStore(context: CliContext, file: string, stateDir: string): Promise<void> {
  const { env } = context.process
  const settings = settingsOf(await loadConfig({ schema: configSchema, env, file }), stateDir)
  await using _store = await openAccessStore(settings, { env, check: 'quick' })
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
