import { parse } from 'smol-toml'
import { didYouMean } from '../../core/did-you-mean.ts'
import { type AnySchema, childOf, keysOf, takesAnyKey, wantsText } from './schema-walk.ts'

export type EnvOverride = { path: string[]; value: unknown; variable: string }
export type EnvProblem = { variable: string; message: string; fix?: string }

const ENV_PREFIX = 'SLUICE_'
const LEVELS_MAX = 16

/**
 * Overrides from the environment: `SLUICE_BUNDLE__WS__QUERY_TOKEN=true` sets `bundle.ws.queryToken`. Case and single
 * underscores are ignored, two underscores go one level down. A name with a level that matches no schema key is an
 * issue, since a misspelt override would otherwise be ignored; a name without a level may belong to another program, and sets nothing when it is empty.
 */
export function readEnv(
  env: Readonly<Record<string, string | undefined>>,
  schema: AnySchema,
): { overrides: EnvOverride[]; problems: EnvProblem[] } {
  const overrides: EnvOverride[] = []
  const problems: EnvProblem[] = []
  for (const [variable, text] of Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!variable.startsWith(ENV_PREFIX) || text === undefined) continue
    const names = variable.slice(ENV_PREFIX.length).split('__')
    if (names.some((name) => name === '') || names.length > LEVELS_MAX) continue
    if (text === '' && names.length === 1) continue
    const found = findKey(names, schema)
    if ('path' in found) overrides.push({ path: found.path, variable, value: readValue(text, found.schema) })
    else if (names.length > 1) problems.push({ variable, ...found })
  }
  return { overrides, problems }
}

/** The variable that overrides a key, for documents and for `config show`. */
export function envNameOf(path: readonly string[]): string {
  const names = path.map((key) => key.replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2').replaceAll('-', '_'))
  return ENV_PREFIX + names.join('__').toUpperCase()
}

type Found = { path: string[]; schema: AnySchema } | { message: string; fix?: string }

function findKey(names: string[], root: AnySchema): Found {
  const path: string[] = []
  let schema = root
  for (const name of names) {
    const keys = keysOf(schema)
    const key = keys.find((candidate) => fold(candidate) === fold(name))
    // Names of plans and upstreams are the operator's own; by convention they are lower case.
    const taken = key ?? (takesAnyKey(schema) ? name.toLowerCase() : undefined)
    const next = taken === undefined ? undefined : childOf(schema, taken)
    if (taken === undefined || next === undefined) return unknown(name, path, keys)
    path.push(taken)
    schema = next
  }
  return { path, schema }
}

function unknown(name: string, path: string[], keys: string[]): Found {
  const where = path.length === 0 ? 'the config' : path.join('.')
  const near = didYouMean(fold(name), keys.map(fold))
  const meant = keys.find((key) => fold(key) === near)
  const message = `${where} has no key that ${name} could stand for`
  return meant === undefined ? { message } : { message, fix: `did you mean ${envNameOf([...path, meant])}?` }
}

function fold(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, '')
}

/** The value if the text is a TOML value (`true`, `42`, `[1, 2]`, `"text"`), else the text. */
function readValue(text: string, schema: AnySchema): unknown {
  if (wantsText(schema)) return text
  try {
    return parse(`value = ${text.trim()}`)['value']
  } catch {
    return text
  }
}
