import { configJsonSchema, type JsonSchema } from './config.ts'
import { COMMENTS, EXAMPLES } from './example-values.ts'

/**
 * Every option with its default or an example, commented out, generated from the schema. The headers of tables are not commented out, and every option is on
 * one line, so that the # of any line can be removed alone.
 */
export function exampleConfig({ host, state }: { readonly host: string; readonly state?: string | undefined }): string {
  const entries = Object.entries(configJsonSchema().properties ?? {})
  const keys = entries.filter(([name, schema]) => name !== 'host' && name !== 'plans' && !isTable(schema))
  const lines = [
    '#:schema ./sluice.schema.json',
    '# Sluice configuration. Each line that is commented out is the default, or an example where the comment says so; remove the # to change it.',
    '# A table such as [metrics] is in a file once: change it where it is. Only tables of a list, [[upstreams.nodes]], are added at the end.',
    '# Check this file: sluice config check. Completion in editors: sluice config schema > sluice.schema.json',
    '',
    `host = ${JSON.stringify(host)}`,
    ...keys.flatMap(([name, schema]) =>
      name === 'state' && state !== undefined ? [`state = ${JSON.stringify(state)}`] : keyLines([name], schema),
    ),
  ]
  for (const [name, section] of entries) if (isTable(section)) lines.push('', ...sectionLines([name], section))
  lines.push('', ...PLAN_EXAMPLE)
  return `${lines.join('\n')}\n`
}

/** A table that is always there. One without a default is optional: its header alone would be an incomplete table. */
function isTable({ properties, default: given }: JsonSchema): boolean {
  return properties !== undefined && given !== undefined
}

function sectionLines(path: readonly string[], section: JsonSchema): string[] {
  const entries = Object.entries(section.properties ?? {})
  const values = entries.filter(([, value]) => !isTable(value) && value.deprecated !== true)
  const tables = entries.filter(([, value]) => isTable(value))
  return [
    ...(section.description === undefined ? [] : [`# ${section.description}`]),
    `[${path.join('.')}]`,
    ...values.flatMap(([name, schema]) => keyLines([...path, name], schema)),
    ...tables.flatMap(([name, value]) => ['', ...sectionLines([...path, name], value)]),
  ]
}

function keyLines(path: readonly string[], schema: JsonSchema): string[] {
  const example = EXAMPLES[path.join('.')]
  const isDefault = example === undefined && schema.default !== undefined
  const allowed = schema.enum === undefined ? '' : ` One of ${schema.enum.map((value) => String(value)).join(', ')}.`
  const given = isDefault
    ? ''
    : schema.default === undefined
      ? ' Not set by default; an example:'
      : ' None by default; an example:'
  const comment = `${schema.description ?? ''}${allowed}${given}`.trim()
  return [
    ...(COMMENTS[path.join('.')] ?? []).map((text) => `#   ${text}`),
    ...(comment === '' ? [] : [`#   ${comment}`]),
    `# ${path.at(-1)} = ${toToml(example ?? exampleOf(path, schema))}`,
  ]
}

/** The default, or a value that the schema accepts. */
function exampleOf(path: readonly string[], schema: JsonSchema): unknown {
  if (schema.default !== undefined) return schema.default
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return schema.enum[0]
  if (schema.type === 'boolean') return false
  if (schema.type === 'integer' || schema.type === 'number') return schema.minimum ?? 1
  if (schema.properties !== undefined) {
    const required = Object.entries(schema.properties).filter(([name]) => schema.required?.includes(name) === true)
    return Object.fromEntries(required.map(([name, inner]) => [name, exampleOf([...path, name], inner)]))
  }
  const key = path.at(-1) as string
  const known = EXAMPLES[path.join('.')] ?? EXAMPLES[key]
  if (known === undefined)
    throw new Error(`${path.join('.')} has no default, and example-values.ts has no example for it`)
  return known
}

function toToml(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toToml).join(', ')}]`
  if (value !== null && typeof value === 'object') {
    return `{ ${Object.entries(value)
      .map(([key, inner]) => `${key} = ${toToml(inner)}`)
      .join(', ')} }`
  }
  return JSON.stringify(value)
}

const PLAN_EXAMPLE = [
  '# Plans in addition to the five built-in ones (sluice plan list).',
  '[plans]',
  '# custom = { unitsPerSecond = 1000, sendsPerSecond = 200, wsConnections = 100, wsSubscriptions = 50000, grpcStreams = "unlimited", grpcAccountsPerStream = 5000 }',
]
