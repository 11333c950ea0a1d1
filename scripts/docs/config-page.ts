import { envNameOf } from '../../src/platform/config/env.ts'
import { configJsonSchema, type JsonSchema } from '../../src/processes/compose/config/config.ts'
import { GENERATED, table } from './markdown.ts'

export function configPage(): string {
  const schema = configJsonSchema()
  const sections = Object.entries(schema.properties ?? {})
  const top = sections.filter(([, value]) => value.properties === undefined && value.type !== 'object')
  const tables = sections.filter(([, value]) => value.properties !== undefined || value.type === 'object')
  return `${[
    '# Configuration',
    GENERATED,
    'One TOML file: `--config FILE`, else `SLUICE_CONFIG`, else `./sluice.toml` or `/etc/sluice/sluice.toml` if it exists. Every key has a default; an unknown key prevents the start, with an error that names the line. The environment overrides the file: `SLUICE_METRICS__LISTEN=127.0.0.1:9500`. The state folder is `--state DIR`, else `SLUICE_STATE`, else `state` of the file, else `./.sluice`. Commands about a running process use its configuration and state folder, from any folder: see [operating.md](operating.md#commands-in-another-folder). Secrets are given by reference, `file:PATH` (mode 0600) or `env:NAME`.',
    'Source: the schema in `src/processes/compose/config/config.ts` and the `options.ts` of each module. `sluice init` writes a commented file, `sluice config check` validates it, `sluice config show` prints each value with its source.',
    '## Top level',
    rowsOf([], top),
    ...tables.flatMap(([name, value]) => [`## [${name}]`, value.description ?? '', rowsOf([name], entriesOf(value))]),
  ]
    .filter((text) => text !== '')
    .join('\n\n')}\n`
}

function entriesOf(schema: JsonSchema): [string, JsonSchema][] {
  const own = Object.entries(schema.properties ?? {})
  const named =
    typeof schema.additionalProperties === 'object'
      ? [['NAME', schema.additionalProperties] as [string, JsonSchema]]
      : []
  return [...own, ...named]
}

function rowsOf(path: string[], entries: [string, JsonSchema][]): string {
  return table(
    ['key', 'type', 'default', 'environment', 'meaning'],
    flatten(path, entries).map(([keys, schema]) => row(keys, schema)),
  )
}

function* walk(path: string[], entries: [string, JsonSchema][]): Generator<[string[], JsonSchema]> {
  for (const [name, schema] of entries) {
    const inner = entriesOf(schema)
    const items = entriesOf(schema.items ?? {})
    if (inner.length === 0) yield [[...path, name], schema]
    yield* walk([...path, name], inner)
    yield* walk([...path, `${name}[]`], items)
  }
}

const flatten = (path: string[], entries: [string, JsonSchema][]): [string[], JsonSchema][] => [...walk(path, entries)]

function row(path: string[], schema: JsonSchema): string[] {
  const isTable = (schema.anyOf ?? schema.oneOf)?.some(({ properties }) => properties !== undefined) === true
  const isItem = path.some((key) => key.endsWith('[]'))
  const environment = path.includes('NAME') || isTable || isItem ? '' : `\`${envNameOf(path)}\``
  const given = schema.default === undefined ? '' : `\`${JSON.stringify(schema.default)}\``
  return [`\`${path.join('.')}\``, typeOf(schema), given, environment, schema.description ?? '']
}

function typeOf(schema: JsonSchema): string {
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${String(value)}\``).join(', ')
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``
  const variants = schema.anyOf ?? schema.oneOf
  if (variants !== undefined) return [...new Set(variants.map(typeOf))].filter((text) => text !== 'null').join(' or ')
  if (schema.properties !== undefined) return `{ ${Object.keys(schema.properties).join(', ')} }`
  if (schema.type !== 'integer' && schema.type !== 'number') return schema.type ?? 'any'
  const bounded = schema.maximum !== undefined && schema.maximum < Number.MAX_SAFE_INTEGER
  return bounded ? `${schema.type} ${schema.minimum ?? ''}..${schema.maximum}` : schema.type
}
