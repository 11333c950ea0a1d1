/**
 * Secrets that must never be printed, and their replacements. One set of rules for log records, error texts and dumps: a
 * value is masked because of its name or because of its form.
 */

/** `slc_` or `sla_` and at least 12 characters, so that a token truncated by a limit is masked too. */
const TOKEN = /sl[ac](?:_|%5[fF])[0-9A-Za-z]{12,}/g
const SCHEME_VALUE = /\b(Basic|Bearer)(\s+|%20)(?!\[redacted)([^\s"',;&]{6,})/gi
/** A path that ends in the name of the scheme, as in `/etc/basic auth`: with an ordinary word after it, it is no header. */
const PATH_START = /(?:^|\()[.~]{0,2}\//
/** A longer path is not searched; what follows it is masked. */
const PATH_CHARS_MAX = 256
const ORDINARY_WORD = /^[a-z]{1,12}[.:]?$/
/** The part between `://` and `@`. In examples this is the word USER, which is shown. */
const USER_INFO = /(:\/\/)(?!USER@)[^\s/?#@"']+@/g
/** A question mark between two parts of an address: a query string. */
const QUERY = /(?<=[\w/\])%.~:*-])\?(?!\[query\])[\w%&=+~-][^\s"<>]*/g
/** A header in its wire form. */
const HEADER_VALUE =
  /\b((?:proxy-)?authorization|x-token|(?:x-)?api[-_]key|x-clickhouse-key|(?:set-)?cookie)("?\s*[:=]\s*"?)(?!\[redacted|Basic\b|Bearer\b)([^\s"',;&}]+)/gi
/** Other names only with a value assigned, not within a sentence. Switches, and the words `file:PATH` and `env:NAME` of examples, are shown. */
const ASSIGNED_VALUE =
  /(api-?key|password|passwd|passphrase|secret|ticket|token)("?\s*=\s*"?|"\s*:\s*"?)(?!\[redacted|(?:true|false|file:PATH|env:NAME)\.?(?:[\s"',;&}]|$))([^\s"',;&}]+)/gi
/** Characters that JSON does not escape but a terminal or line reader may interpret: DEL, C1, line separators, direction marks. */
const UNSAFE = /[\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g

const SECRET_NAME =
  /(?:token|password|passwd|passphrase|secret|ticket|apikey|authorization|cookie|credential|credentials|privatekey|secretkey|clickhousekey)$/

/** Shorter values are masked completely: four characters would be too large a part of them. */
const TAIL_SHOWN_FROM = 16

/** Whether a field, header or parameter of this name carries a secret. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name.toLowerCase().replaceAll(/[-_. ]/g, ''))
}

/** The replacement of a secret: its last four characters, enough to distinguish two. */
export function maskSecret(value: string): string {
  return value.length < TAIL_SHOWN_FROM ? '[redacted]' : `[redacted:${value.slice(-4).replaceAll(UNSAFE, '?')}]`
}

/** The text with secrets masked, query strings dropped and terminal control characters escaped. */
export function redactText(text: string): string {
  return text
    .replace(SCHEME_VALUE, maskScheme)
    .replace(TOKEN, maskSecret)
    .replace(USER_INFO, '$1[redacted]@')
    .replace(HEADER_VALUE, maskNamed)
    .replace(ASSIGNED_VALUE, maskNamed)
    .replace(QUERY, '?[query]')
    .replace(UNSAFE, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function maskNamed(_all: string, name: string, sign: string, value: string): string {
  return `${name}${sign}${maskSecret(value)}`
}

function maskScheme(all: string, scheme: string, gap: string, value: string, at: number, text: string): string {
  const isFileName = ORDINARY_WORD.test(value) && isPathBefore(text, at)
  return isFileName ? all : `${scheme}${gap}${maskSecret(value)}`
}

function isPathBefore(text: string, at: number): boolean {
  let from = at
  while (from > 0 && at - from <= PATH_CHARS_MAX && !/[\s"']/.test(text[from - 1] as string)) from--
  const path = text.slice(from, at)
  const start = path.search(PATH_START)
  if (path.length > PATH_CHARS_MAX || start === -1) return false
  return path.indexOf('/', start) < path.length - 1 && /[-./]$/.test(path)
}
