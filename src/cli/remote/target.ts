import { isAdminTokenText } from '../../access/token.ts'
import { LOCAL_COMMANDS } from '../../contract/local-commands.ts'
import { isLoopbackName } from '../../contract/public-url.ts'
import { ServiceError } from '../../core/error.ts'
import { resolveSecret, type Secret } from '../../platform/config/secret-ref.ts'

/** The process that a command is about, if it is not the one of this machine. */
export type RemoteTarget = {
  readonly url: string
  /** From `--remote-token-file`. */
  readonly tokenFile: string | undefined
}

type Env = Readonly<Record<string, string | undefined>>

const FLAGS = ['--remote', '--remote-token-file'] as const

/**
 * Takes `--remote URL` and `--remote-token-file FILE` out of a command line, before or after the command: they belong to every command. Without the flag
 * `SLUICE_REMOTE` is the URL.
 */
export function readRemote(argv: readonly string[], env: Env): { words: string[]; remote: RemoteTarget | undefined } {
  const words: string[] = []
  const given = new Map<string, string>()
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at] as string
    // What follows is no flag of ours.
    if (word === '--') {
      words.push(...argv.slice(at))
      break
    }
    const flag = FLAGS.find((name) => word === name || word.startsWith(`${name}=`))
    if (flag === undefined) {
      words.push(word)
      continue
    }
    if (given.has(flag)) throw usage(`${flag} is given twice`, 'Give it once.')
    const value = word === flag ? argv[(at += 1)] : word.slice(flag.length + 1)
    if (value === undefined || value === '' || value.startsWith('--'))
      throw usage(`${flag} needs a value`, `For example: ${EXAMPLES[flag]}`)
    given.set(flag, value)
  }
  const isNamed = given.has('--remote')
  const url = given.get('--remote') ?? (env['SLUICE_REMOTE'] || undefined)
  const tokenFile = given.get('--remote-token-file')
  if (url === undefined) {
    if (tokenFile === undefined) return { words, remote: undefined }
    throw usage('--remote-token-file needs --remote', `For example: ${EXAMPLES['--remote']}`)
  }
  refuseLocal(words, isNamed)
  return { words, remote: { url, tokenFile } }
}

const EXAMPLES = {
  '--remote': '--remote https://admin.example.com:9470',
  '--remote-token-file': '--remote-token-file ana.token',
} as const

/** Refuses a command without a route. One that only prints is the same everywhere: `SLUICE_REMOTE` does not concern it. */
function refuseLocal(words: readonly string[], isNamed: boolean): void {
  if (words.some((word) => word === '--help' || word === '-h')) return
  const names = [words.slice(0, 2).join(' '), words[0] ?? '']
  const command = names.find((name) => Object.hasOwn(LOCAL_COMMANDS, name))
  if (command === undefined) return
  const because = LOCAL_COMMANDS[command] as string
  if (because.startsWith('only ') && !isNamed) return
  throw staysLocal(command, because)
}

export function staysLocal(command: string, because: string): ServiceError {
  return usage(
    `sluice ${command} stays local because it ${because}`,
    `Run it without --remote and SLUICE_REMOTE, on the machine that it is about: sluice ${command}`,
  )
}

/** The URL of the admin API: https, or http to this machine. */
export function parseRemoteUrl(text: string): URL {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol))
    throw usage('the address of --remote is not an http or https URL', `For example: ${EXAMPLES['--remote']}`)
  if (url.username !== '' || url.password !== '')
    throw usage('the URL of --remote has credentials, and URLs are logged', 'Put the token into SLUICE_ADMIN_TOKEN.')
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '')
    throw usage('the URL of --remote has a path', `Give scheme, host and port only: ${url.origin}`)
  if (url.protocol === 'http:' && !isLoopbackName(url.hostname))
    throw usage(
      `${url.origin} is not encrypted, and the token would be readable on the way`,
      'Use https (admin.tls in docs/config.md), or an SSH tunnel to 127.0.0.1: ssh -L 9470:127.0.0.1:9470 HOST',
    )
  return url
}

/** The token of the administrator: never from an argument, which other users of the machine can read. */
export async function readRemoteToken({ tokenFile }: RemoteTarget, env: Env): Promise<Secret> {
  const file = tokenFile ?? (env['SLUICE_ADMIN_TOKEN_FILE'] || undefined)
  const isInEnv = (env['SLUICE_ADMIN_TOKEN'] ?? '') !== ''
  if (file === undefined && !isInEnv)
    throw usage(
      'a remote command needs the token of an administrator',
      'Set SLUICE_ADMIN_TOKEN, or name its file with --remote-token-file or SLUICE_ADMIN_TOKEN_FILE. Add an administrator on the machine with: sluice admin add',
    )
  if (isInEnv && tokenFile === undefined && file !== undefined)
    throw usage('SLUICE_ADMIN_TOKEN and SLUICE_ADMIN_TOKEN_FILE are both set', 'Set one of them.')
  const secret = await resolveSecret(file === undefined ? 'env:SLUICE_ADMIN_TOKEN' : `file:${file}`, { env })
  if (isAdminTokenText(secret.reveal())) return secret
  throw new ServiceError('secret-invalid', 'the token is not one of an administrator: those begin with sla_', {
    fix: 'Check for missing characters; a token of a customer begins with slc_ and is not accepted here.',
  })
}

function usage(message: string, fix: string): ServiceError {
  return new ServiceError('usage', message, { fix })
}
