import { ExitCode } from '@stricli/core'
import { docsUrl, errorEntry } from '../contract/errors.ts'
import { messageOf, ServiceError } from '../core/error.ts'

/** What went wrong in the form that both people and scripts get. */
export type CliError = { code: string; message: string; fix: string; docs_url: string; retryable: boolean }

export function cliErrorOf(error: unknown): CliError {
  const code = error instanceof ServiceError ? error.code : 'internal'
  const entry = errorEntry(code)
  return {
    code,
    message: error instanceof ServiceError ? error.message : messageOf(error),
    fix: (error instanceof ServiceError ? error.fix : undefined) ?? (code === 'internal' ? INTERNAL_FIX : entry.fix),
    docs_url: docsUrl(code),
    retryable: entry.retryable,
  }
}

/** The entry's own words are for a customer, who has an operator to turn to. */
const INTERNAL_FIX =
  'A fault of Sluice or of its installation: run npm ci in its folder, then sluice doctor; if it stays, report the lines below.'

export function exitCodeOf(error: unknown): number {
  const code = error instanceof ServiceError ? error.code : 'internal'
  return errorEntry(code).exit ?? 1
}

/** The library's own codes are negative: an unknown command or a bad argument is wrong usage, the rest went wrong inside. */
export function exitCodeFrom(libraryCode: number | string | null | undefined): number {
  const code = Number(libraryCode ?? 0)
  if (code >= 0) return code
  return code === ExitCode.UnknownCommand || code === ExitCode.InvalidArgument ? 2 : 1
}

/** One block on standard error: what happened, what to do, where it is explained. */
export function formatError(error: unknown, json: boolean): string {
  const shown = cliErrorOf(error)
  if (json) return JSON.stringify(shown)
  const stack = shown.code === 'internal' && error instanceof Error ? `\n${error.stack ?? ''}` : ''
  return `error: ${shown.message}\n  fix: ${shown.fix}\n  see: ${shown.docs_url}${stack}`
}
