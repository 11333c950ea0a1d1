import {
  type ApplicationText,
  ArgumentScannerError,
  formatMessageForArgumentScannerError,
  text_en,
} from '@stricli/core'
import { cliErrorOf, docsUrl, formatError } from './errors.ts'

/** Read from `argv` before flags are parsed, so that parse errors are JSON too. */
export function wantsJson(argv: readonly string[]): boolean {
  return argv.some(
    (word, at) =>
      word === '--json' ||
      /^(-o|--output)=json$/.test(word) ||
      (word === 'json' && /^(-o|--output)$/.test(argv[at - 1] ?? '')),
  )
}

/** Replaces the error texts of stricli: each has a message and a fix, as text or as JSON. */
export function createApplicationText(argv: readonly string[]): ApplicationText {
  const json = wantsJson(argv)
  let isReported = false
  const usageError = (message: string, fix: string): string => {
    if (!json) return `error: ${message}\n  fix: ${fix}`
    // The library reports each mistake by itself. JSON is one object: that of the first.
    if (isReported) return ''
    isReported = true
    return JSON.stringify({ code: 'usage', message, fix, docs_url: docsUrl('usage'), retryable: false })
  }
  const firstFlag = argv.findIndex((word) => word.startsWith('-'))
  const route = argv
    .slice(0, firstFlag === -1 ? 2 : Math.min(firstFlag, 2))
    .filter((word) => /^[a-z][a-z-]*$/.test(word))
  const helpOf = `Run: ${['sluice', ...route, '--help'].join(' ')}`
  return {
    ...text_en,
    noCommandRegisteredForInput: ({ input, corrections: quoted }) => {
      const corrections = quoted.map((word) => word.replaceAll('`', ''))
      return usageError(
        `unknown command "${input}"${corrections.length > 0 ? `, did you mean ${orList(corrections)}?` : ''}`,
        corrections.length > 0 ? `Use ${orList(corrections)}.` : 'Run: sluice --help',
      )
    },
    exceptionWhileParsingArguments: (error) => {
      if (!(error instanceof ArgumentScannerError)) return formatError(error, json)
      const message = formatMessageForArgumentScannerError(error, {
        FlagNotFoundError: ({ input, corrections }) =>
          `unknown flag --${input}${corrections.length > 0 ? `, did you mean ${orList(corrections.map((flag) => `--${flag}`))}?` : ''}`,
        UnsatisfiedFlagError: ({ externalFlagName }) =>
          `--${externalFlagName} ${isTyped(argv, externalFlagName) ? 'needs a value' : 'is required'}`,
      })
      return usageError(lowerFirst(message), helpOf)
    },
    exceptionWhileLoadingCommandFunction: (error) => formatError(error, json),
    exceptionWhileLoadingCommandContext: (error) => formatError(error, json),
    exceptionWhileRunningCommand: (error) => formatError(error, json),
    commandErrorResult: (error) => formatError(error, json),
    formatException: (error) => cliErrorOf(error).message,
  }
}

/** Whether the flag is there: `--some-flag`, `--someFlag`, or `-s` for it. */
function isTyped(argv: readonly string[], name: string): boolean {
  const bare = (text: string) => text.replaceAll('-', '').toLowerCase()
  return argv.some((word) => (word.startsWith('--') ? bare(word) === bare(name) : word === `-${name.charAt(0)}`))
}

function orList(words: readonly string[]): string {
  return words.map((word) => `"${word}"`).join(' or ')
}

function lowerFirst(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1)
}
