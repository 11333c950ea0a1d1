import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ExitCode } from '@stricli/core'
import { ERRORS, errorEntry } from '../contract/errors.ts'
import type { ExitCode as OurExitCode } from '../contract/exit-codes.ts'
import { messageOf, ServiceError } from '../core/error.ts'
import { RemoteFault } from './remote/faults.ts'

/** An error as `--json` prints it. */
export type CliError = {
  code: string
  message: string
  fix: string
  docs_url: string
  retryable: boolean
  /** Under which the log of a remote process has the request. */
  request_id?: string
}

export function cliErrorOf(thrown: unknown): CliError {
  const error = knownError(thrown)
  const code = error instanceof ServiceError ? error.code : 'internal'
  const entry = errorEntry(code)
  return {
    code,
    message: error instanceof ServiceError ? error.message : messageOf(error),
    fix: (error instanceof ServiceError ? error.fix : undefined) ?? (code === 'internal' ? INTERNAL_FIX : entry.fix),
    docs_url: docsUrl(code),
    retryable: entry.retryable,
    ...(error instanceof RemoteFault && error.requestId !== undefined ? { request_id: error.requestId } : {}),
  }
}

/** The entry of an error in the documents of this installation: the command line works without a server. */
export function docsUrl(code: string): string {
  const page = pathToFileURL(join(import.meta.dirname, '../../docs/errors.md'))
  return `${page.href}#${Object.hasOwn(ERRORS, code) ? code : 'internal'}`
}

/** The entry in `contract/errors.ts` addresses customers and refers them to the operator. */
const INTERNAL_FIX =
  'This is a bug in Sluice or a broken installation. Run npm ci in its folder, then sluice doctor. If the error stays, report the lines below.'

/** The folder of the shell may be gone, for example after an upgrade that swapped folders. */
function knownError(error: unknown): unknown {
  if ((error as NodeJS.ErrnoException | undefined)?.syscall !== 'uv_cwd') return error
  return new ServiceError('usage', 'the current folder was removed', {
    fix: 'Change to another folder, such as cd /, and run the command again.',
    cause: error,
  })
}

export function exitCodeOf(thrown: unknown): number {
  const error = knownError(thrown)
  const code = error instanceof ServiceError ? error.code : 'internal'
  return REMOTE_EXITS[code] ?? errorEntry(code).exit ?? 1
}

/** Exit codes of refusals of the admin API, which the command line of the machine itself never has. */
const REMOTE_EXITS: Readonly<Record<string, OurExitCode>> = {
  unauthorized: 77,
  forbidden: 77,
  'too-many-requests': 75,
  'idempotency-running': 75,
}

/** stricli sets negative exit codes: unknown commands and bad arguments are usage errors (2), all others internal errors (1). */
export function exitCodeFrom(libraryCode: number | string | null | undefined): number {
  const code = Number(libraryCode ?? 0)
  if (code >= 0) return code
  return code === ExitCode.UnknownCommand || code === ExitCode.InvalidArgument ? 2 : 1
}

/** The block printed on standard error: message, fix, link to the documentation. */
export function formatError(error: unknown, json: boolean): string {
  const shown = cliErrorOf(error)
  if (json) return JSON.stringify(shown)
  const request = shown.request_id === undefined ? '' : `\n  request: ${shown.request_id}`
  const isOurs = shown.code === 'internal' && !(error instanceof RemoteFault)
  const stack = isOurs && error instanceof Error ? `\n${error.stack ?? ''}` : ''
  return `error: ${shown.message}\n  fix: ${shown.fix}\n  see: ${shown.docs_url}${request}${stack}`
}
