import { configJsonSchema, type JsonSchema } from './config.ts'

/** Every option with its default, commented out, generated from the schema. */
export function exampleConfig({ host }: { readonly host: string }): string {
  const schema = configJsonSchema()
  const lines = [
    '#:schema ./sluice.schema.json',
    '# Sluice configuration. Every value below is the default; remove the # to change one.',
    '# Check this file: sluice config check. Completion in editors: sluice config schema > sluice.schema.json',
    '',
    `host = ${JSON.stringify(host)}`,
  ]
  for (const [name, section] of Object.entries(schema.properties ?? {})) {
    if (section.properties !== undefined) lines.push('', ...sectionLines([name], section))
  }
  lines.push('', ...PLAN_EXAMPLE)
  return `${lines.join('\n')}\n`
}

function sectionLines(path: readonly string[], section: JsonSchema): string[] {
  const entries = Object.entries(section.properties ?? {})
  const values = entries.filter(([, value]) => value.properties === undefined)
  const tables = entries.filter(([, value]) => value.properties !== undefined)
  return [
    ...(section.description === undefined ? [] : [`# ${section.description}`]),
    ...(values.length > 0 ? [`# [${path.join('.')}]`] : []),
    ...values.flatMap(([name, schema]) => keyLines(name, schema)),
    ...tables.flatMap(([name, value]) => ['#', ...sectionLines([...path, name], value)]),
  ]
}

function keyLines(name: string, schema: JsonSchema): string[] {
  const allowed = schema.enum === undefined ? '' : ` One of ${schema.enum.map((value) => String(value)).join(', ')}.`
  const comment = `${schema.description ?? ''}${allowed}`.trim()
  return [...(comment === '' ? [] : [`#   ${comment}`]), `# ${name} = ${tomlValue(schema)}`]
}

function tomlValue(schema: JsonSchema): string {
  if (schema.default !== undefined) return toToml(schema.default)
  if (schema.const !== undefined) return toToml(schema.const)
  if (schema.type === 'string') return '"…"'
  if (schema.type === 'boolean') return 'false'
  return schema.type === 'object' ? '{ … }' : '…'
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
  '# [plans.custom]',
  '# unitsPerSecond = 1000',
  '# sendsPerSecond = 200',
  '# wsConnections = 100',
  '# wsSubscriptions = 50000',
  '# grpcStreams = "unlimited"',
  '# grpcAccountsPerStream = 5000',
]
