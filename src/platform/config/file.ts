import { isUtf8 } from 'node:buffer'
import { readFileSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { parse, TomlError } from 'smol-toml'
import type { z } from 'zod'
import { messageOf, ServiceError } from '../../core/error.ts'
import { type EnvOverride, readEnv } from './env.ts'
import { type ConfigIssue, issuesFrom, printIssue } from './issues.ts'
import { findKeyPositions, findRepeated, type KeyPath, type Position, pathKey } from './toml-positions.ts'

export type ConfigOrigin =
  | { from: 'flag' }
  | { from: 'env'; variable: string }
  | { from: 'file'; file: string; line: number; column: number }
  | { from: 'default' }

export type LoadedConfig<Value> = {
  value: Value
  /** The absolute path of the file; undefined without one. */
  file: string | undefined
  /** The base of relative paths in the config. */
  folder: string
  /** The origin of the value at this path: a flag, the environment, the file, or the default. */
  originOf(path: KeyPath): ConfigOrigin
  /** Every single value with its origin, in the order of the schema. */
  entries(): { path: KeyPath; value: unknown; origin: ConfigOrigin }[]
}

export type ConfigRequest<Schema extends z.ZodType> = {
  schema: Schema
  /** The TOML file; without it only defaults and environment apply. */
  file?: string | undefined
  env: Readonly<Record<string, string | undefined>>
  /** Values of the command line, which override all others. */
  flags?: readonly { path: KeyPath; value: unknown }[]
}

const FILE_BYTES_MAX = 1024 * 1024

/** All issues of a config, each with its position. */
export class ConfigError extends ServiceError {
  readonly issues: readonly ConfigIssue[]
  constructor(issues: readonly ConfigIssue[], given: { fix?: string; cause?: unknown } = {}) {
    const message = issues.map(printIssue).join('\n')
    super('config-invalid', message, {
      fields: { issues: issues.length, file: issues[0]?.file },
      fix: given.fix ?? 'Correct the lines named above, then run: sluice config check',
      cause: given.cause,
    })
    this.issues = issues
  }
}

export async function loadConfig<Schema extends z.ZodType>(
  request: ConfigRequest<Schema>,
): Promise<LoadedConfig<z.output<Schema>>> {
  const { schema, env, flags = [] } = request
  const source = request.file === undefined ? undefined : await readSource(request.file)
  const { overrides, problems } = readEnv(env, schema)
  const input = merge(source?.table ?? {}, overrides, flags)

  const origins = new Origins(source, overrides, flags)
  const issues: ConfigIssue[] = problems.map(({ variable, message, fix }) => ({ variable, path: [], message, fix }))
  const parsed = schema.safeParse(input)
  if (!parsed.success)
    issues.push(...issuesFrom(parsed.error.issues, { schema, input, positionOf: (path) => origins.positionOf(path) }))
  if (issues.length > 0 || !parsed.success) throw new ConfigError(issues)

  return {
    value: parsed.data,
    file: source?.file,
    folder: source ? dirname(source.file) : resolve('.'),
    originOf: (path) => origins.of(path),
    entries: () => [...leaves(parsed.data, [])].map(({ path, value }) => ({ path, value, origin: origins.of(path) })),
  }
}

/**
 * The text of one top-level key, without the checks of `loadConfig`. Undefined when the file cannot be read, is not TOML or lacks the key, and for a pipe,
 * which can be read once.
 */
export function readTopLevelText(file: string, key: string): string | undefined {
  try {
    const found = statSync(file)
    if (!found.isFile() || found.size > FILE_BYTES_MAX) return undefined
    const value = (parse(readFileSync(file, 'utf8')) as Record<string, unknown>)[key]
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}

type Source = { file: string; table: Record<string, unknown>; positions: Map<string, Position> }

async function readSource(given: string): Promise<Source> {
  const file = resolve(given)
  const bytes = await readStart(file, FILE_BYTES_MAX + 1).catch((error: unknown) => {
    throw new ConfigError([{ file: given, path: [], message: `cannot be read: ${messageOf(error)}` }], {
      fix: unreadableFix(given, error),
      cause: error,
    })
  })
  if (bytes.length > FILE_BYTES_MAX) {
    throw new ConfigError([{ file: given, path: [], message: `is larger than ${FILE_BYTES_MAX} bytes` }])
  }
  const text = decodeText(bytes, given)
  try {
    const table = parse(text) as Record<string, unknown>
    return { file, table, positions: findKeyPositions(text) }
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    // The library's message quotes the lines around the mistake, which may hold secrets; its first line does not.
    const [reason = ''] = error.message.split('\n')
    const first = reason.includes('redefine') ? findRepeated(text, error.line) : undefined
    const message = `${reason.replace(/^Invalid TOML document: /, 'not TOML: ')}${first === undefined ? '' : `; the first is in line ${first.line}`}`
    const fix = reason.includes('redefine')
      ? 'A table or key is in the file once: move these lines under the header that is already there, then run: sluice config check'
      : 'Correct the line named above (text must be in quotes), then run: sluice config check'
    throw new ConfigError([{ file: given, line: error.line, column: error.column, path: [], message }], { fix })
  }
}

/** At most this many bytes: a device has no end. */
async function readStart(file: string, bytesMax: number): Promise<Buffer> {
  await using handle = await open(file)
  const bytes = Buffer.alloc(bytesMax)
  let length = 0
  for (let read = -1; read !== 0 && length < bytesMax; length += read)
    read = (await handle.read(bytes, length, bytesMax - length, null)).bytesRead
  return bytes.subarray(0, length)
}

/** Bytes that are not UTF-8 would become replacement characters in names and addresses. */
function decodeText(bytes: Buffer, file: string): string {
  const text = bytes.toString('utf8')
  if (isUtf8(bytes)) return text
  const lines = bytes.toString('latin1').split('\n')
  const line = 1 + lines.findIndex((each) => !isUtf8(Buffer.from(each, 'latin1')))
  throw new ConfigError([{ file, line, path: [], message: 'not TOML: this line is not UTF-8' }], {
    fix: 'Save the file as UTF-8, then run: sluice config check',
  })
}

/** A file that is there must not be written anew. */
function unreadableFix(file: string, error: unknown): string {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOENT') return `Name the right file with --config, or write one with: sluice init --config ${file}`
  if (code === 'EISDIR') return `Name the file in this folder: --config ${join(file, 'sluice.toml')}`
  return code === 'EACCES'
    ? `Run the command as the user that runs Sluice, with sudo -u USER, or see who may read it: ls -l ${file}`
    : 'Name the right file with --config.'
}

function merge(
  table: Record<string, unknown>,
  overrides: EnvOverride[],
  flags: ConfigRequest<z.ZodType>['flags'],
): unknown {
  const merged = structuredClone(table)
  for (const { path, value } of [...overrides, ...(flags ?? [])]) setAt(merged, path, value)
  return merged
}

function setAt(target: Record<string, unknown>, path: KeyPath, value: unknown): void {
  let holder = target
  for (const key of path.slice(0, -1)) {
    const below = holder[String(key)]
    if (typeof below !== 'object' || below === null) holder[String(key)] = {}
    holder = holder[String(key)] as Record<string, unknown>
  }
  holder[String(path.at(-1))] = value
}

class Origins {
  readonly #source: Source | undefined
  readonly #env: ReadonlyMap<string, string>
  readonly #flags: ReadonlySet<string>

  constructor(source: Source | undefined, overrides: EnvOverride[], flags: readonly { path: KeyPath }[]) {
    this.#source = source
    this.#env = new Map(overrides.map(({ path, variable }) => [pathKey(path), variable]))
    this.#flags = new Set(flags.map(({ path }) => pathKey(path)))
  }

  /** The origin of this path, since a whole table may have one origin: of the table above it. */
  of(path: KeyPath): ConfigOrigin {
    // A table in the file does not mean that each of its values is there.
    return this.#overrideOf(path) ?? this.#inFile(path) ?? { from: 'default' }
  }

  /** The position for messages: the key, or the table that lacks it. */
  positionOf(path: KeyPath): Omit<ConfigIssue, 'path' | 'message'> {
    const override = this.#overrideOf(path)
    if (override?.from === 'flag') return { flag: true }
    if (override?.from === 'env') return { variable: override.variable }
    for (let length = path.length; length > 0; length--) {
      const found = this.#inFile(path.slice(0, length))
      if (found !== undefined) return { file: found.file, line: found.line, column: found.column }
    }
    return this.#source ? { file: this.#source.file, line: 1, column: 1 } : {}
  }

  /** The flag or variable that sets this path, or the whole of a list or table above it: what the file has there is replaced. */
  #overrideOf(path: KeyPath): Extract<ConfigOrigin, { from: 'flag' | 'env' }> | undefined {
    const keys = path.map((_part, at) => pathKey(path.slice(0, path.length - at)))
    if (keys.some((key) => this.#flags.has(key))) return { from: 'flag' }
    const variable = keys.map((key) => this.#env.get(key)).find((name) => name !== undefined)
    return variable === undefined ? undefined : { from: 'env', variable }
  }

  #inFile(path: KeyPath): Extract<ConfigOrigin, { from: 'file' }> | undefined {
    const position = this.#source?.positions.get(pathKey(path))
    return position && this.#source ? { from: 'file', file: this.#source.file, ...position } : undefined
  }
}

function* leaves(value: unknown, path: KeyPath): Generator<{ path: KeyPath; value: unknown }> {
  const isTable = typeof value === 'object' && value !== null && !(value instanceof Date)
  const entries: [string | number, unknown][] = Array.isArray(value)
    ? [...value.entries()]
    : isTable
      ? Object.entries(value)
      : []
  if (entries.length === 0) yield { path, value }
  else for (const [key, below] of entries) yield* leaves(below, [...path, key])
}
