import { styleText } from 'node:util'
import { sanitizeForTerminal } from './plain-text.ts'

/** A record as one line: time, level, module, message, fields. Control characters are replaced. */
export function readableLine(line: string, hidden: readonly string[] = []): string {
  const { time, level, part, msg, ...fields } = JSON.parse(line) as Record<string, unknown>
  const shown = Object.entries(nameIds(fields)).filter(([name]) => !hidden.includes(name))
  const message = shown.map(([name, value]) => `${name}=${fieldText(value)}`)
  const clock = typeof time === 'string' ? time.replace('T', ' ').replace('Z', '') : ' '.repeat(23)
  const words = [clock, word(level).toUpperCase().padEnd(5), word(part).padEnd(10), word(msg), ...message]
  return sanitizeForTerminal(words.join('  ').trimEnd())
}

/** Ids with their names, `subscription="acme-prod (sub_…)"`; the customer of a subscription beside it, by name. */
function nameIds(fields: Record<string, unknown>): Record<string, unknown> {
  const { subscription_name: subscription, customer_name: customer, ...rest } = fields
  const named = Object.entries(rest).flatMap(([field, value]): [string, unknown][] => {
    if (field === 'customer') return [[field, withName(value, customer)]]
    if (field !== 'subscription') return [[field, value]]
    const own: [string, unknown][] = [[field, withName(value, subscription)]]
    return customer === undefined || 'customer' in rest ? own : [...own, ['customer', customer]]
  })
  return Object.fromEntries(named)
}

function withName(id: unknown, name: unknown): unknown {
  return typeof name === 'string' ? `${name} (${word(id)})` : id
}

function word(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function fieldText(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value)
  return /^[\w.:/@+-]+$/.test(value) ? value : JSON.stringify(value)
}

const COLOURS = { warn: 'yellow', error: 'red', fatal: 'red' } as const

/** A record for the terminal of the person who started the process: without the date, the level only if it is not `info`, errors by their message. */
export function terminalLine(line: string, stream: NodeJS.WriteStream): string {
  const { time, level, part, msg, ...fields } = JSON.parse(line) as Record<string, unknown>
  const shown = Object.entries(fields).map(([name, value]) => `${name}=${fieldText(messageIn(value) ?? value)}`)
  const clock = typeof time === 'string' ? time.slice(11, 19) : ''
  const name = word(level) === 'info' ? '' : word(level).toUpperCase()
  const source = word(part) === '' ? '' : `${word(part)}:`
  const message = [name, source, word(msg)].filter((text) => text !== '').join(' ')
  const text = [clock, message, ...shown].filter((each) => each !== '').join('  ')
  const colour = COLOURS[word(level) as keyof typeof COLOURS] as 'yellow' | 'red' | undefined
  const plain = sanitizeForTerminal(text)
  return colour === undefined ? plain : styleText(colour, plain, { stream, validateStream: true })
}

function messageIn(value: unknown): string | undefined {
  const { message } = (typeof value === 'object' && value !== null ? value : {}) as { message?: unknown }
  return typeof message === 'string' ? message : undefined
}
