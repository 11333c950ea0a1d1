import type { ChangeFlags, CliContext } from '../define.ts'
import { FORMER_MESSAGE, printJson, write } from './print.ts'

/** Prints a changed record as JSON, or what changed as a sentence. */
export function reportChange(context: CliContext, flags: ChangeFlags, record: object, sentence: string): void {
  if (flags.json === true) printJson(context, record)
  else done(context, flags, sentence)
}

/** Prints the result of a command that changes something. */
export function done(context: CliContext, flags: ChangeFlags, sentence: string): void {
  if (flags.json === true && flags.dryRun === true)
    return printJson(context, { dryRun: true, message: sentence }, FORMER_MESSAGE)
  write(context, flags.dryRun === true ? `dry run, nothing changed: ${sentence}` : sentence)
}
