import type { z } from 'zod'
import { didYouMean } from '../../core/did-you-mean.ts'
import { type AnySchema, keysOf, schemaAt } from './schema-walk.ts'
import type { KeyPath } from './toml-positions.ts'

/** One mistake and its position. The value itself is never included. */
export type ConfigIssue = {
  file?: string | undefined
  line?: number | undefined
  column?: number | undefined
  /** The environment variable that set the value. */
  variable?: string | undefined
  /** The flag that set the value. */
  flag?: boolean | undefined
  path: KeyPath
  message: string
  fix?: string | undefined
}

/** `sluice.toml:12:3 bundle.rpc.port: expected number, received string (did you mean …?)` */
export function printIssue(issue: ConfigIssue): string {
  const position = issue.variable ?? (issue.flag ? 'command line' : fileLocation(issue))
  const key = issue.path.length === 0 ? '' : `${printPath(issue.path)}: `
  const fix = issue.fix === undefined ? '' : ` (${issue.fix})`
  return `${[position, `${key}${issue.message}`].filter((part) => part !== '').join(' ')}${fix}`
}

function printPath(path: KeyPath): string {
  let text = ''
  for (const key of path) {
    if (typeof key === 'number') text += `[${key}]`
    else text += `${text === '' ? '' : '.'}${/^[\w-]+$/.test(key) ? key : JSON.stringify(key)}`
  }
  return text
}

type Issue = z.core.$ZodIssue
type Context = {
  schema: AnySchema
  input: unknown
  positionOf(path: KeyPath): Omit<ConfigIssue, 'path' | 'message'>
}

export function issuesFrom(issues: readonly Issue[], context: Context): ConfigIssue[] {
  return issues.flatMap((issue) => fromIssue(issue, context, []))
}

function fromIssue(issue: Issue, context: Context, above: KeyPath): ConfigIssue[] {
  const path = [...above, ...issue.path.map((key) => (typeof key === 'symbol' ? String(key) : key))]
  const position = (at: KeyPath) => context.positionOf(at)
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => {
        const schema = schemaAt(context.schema, path)
        const near = schema && didYouMean(key, keysOf(schema))
        const fix = near === undefined ? undefined : `did you mean ${near}?`
        return { ...position([...path, key]), path: [...path, key], message: 'unknown key', fix }
      })
    case 'invalid_union': {
      if (valueAt(context.input, path) === undefined) return [{ ...position(path), path, message: 'is required' }]
      const nearest = nearestCase(issue.errors)
      if (nearest) return nearest.flatMap((inner) => fromIssue(inner, context, path))
      const known = alternativesOf(issue.errors)
      if (known.length === 0) break
      const fix = suggestion(valueAt(context.input, path), known)
      return [{ ...position(path), path, message: `expected ${known.join(' or ')}`, fix }]
    }
    case 'invalid_value': {
      const known = issue.values.map(String)
      const message = known.length === 1 ? `must be ${known[0]}` : `must be one of ${known.join(', ')}`
      return [{ ...position(path), path, message, fix: suggestion(valueAt(context.input, path), known) }]
    }
    case 'invalid_type': {
      const isMissing = valueAt(context.input, path) === undefined
      const message = isMissing ? `is required (${issue.expected})` : plain(issue.message)
      return [{ ...position(path), path, message }]
    }
    default:
  }
  return [{ ...position(path), path, message: plain(issue.message) }]
}

/** The issues of that member of a union that matched furthest. */
function nearestCase(cases: readonly (readonly Issue[])[]): readonly Issue[] | undefined {
  const depth = (issues: readonly Issue[]) => Math.max(0, ...issues.map((issue) => issue.path.length))
  const ranked = cases
    .filter((issues) => issues.length > 0)
    .toSorted((a, b) => depth(b) - depth(a) || a.length - b.length)
  // When none matched further than the others, the general message is clearer than one member's.
  return ranked[0] && depth(ranked[0]) > 0 ? ranked[0] : undefined
}

/** The types and words that the members of a union accept. TOML has no null. */
function alternativesOf(cases: readonly (readonly Issue[])[]): string[] {
  return cases.flat().flatMap((issue) => {
    if (issue.code === 'invalid_union') return alternativesOf(issue.errors)
    if (issue.code === 'invalid_value') return issue.values.map(String)
    return issue.code === 'invalid_type' && issue.expected !== 'null' ? [issue.expected] : []
  })
}

function suggestion(given: unknown, known: readonly string[]): string | undefined {
  const near = typeof given === 'string' ? didYouMean(given, known) : undefined
  return near === undefined ? undefined : `did you mean ${near}?`
}

function plain(message: string): string {
  return message.replace(/^Invalid input: /, '').replace(/^Too (small|big): /, '')
}

function valueAt(input: unknown, path: KeyPath): unknown {
  let value = input
  for (const key of path) {
    if (typeof value !== 'object' || value === null) return undefined
    value = (value as Record<string | number, unknown>)[key]
  }
  return value
}

function fileLocation({ file, line, column }: ConfigIssue): string {
  if (file === undefined) return ''
  return line === undefined ? file : `${file}:${line}:${column ?? 1}`
}
