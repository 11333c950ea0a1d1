import { configJsonSchema, type JsonSchema } from './config.ts'

/** Every key of the config with its default, commented out, made from the schema itself so that it cannot fall behind. */
export function exampleConfig(given: { host: string }): string {
  const schema = configJsonSchema()
  const lines = [
    '#:schema ./sluice.schema.json',
    '# Sluice. Every value below is the default; take away the # to change one.',
    '# sluice config check    looks for mistakes      sluice config schema > sluice.schema.json    lets editors complete',
    '',
    `host = ${JSON.stringify(given.host)}`,
  ]
  for (const [name, section] of Object.entries(schema.properties ?? {})) {
    if (section.properties !== undefined) lines.push('', ...sectionLines([name], section))
  }
  lines.push('', ...PLAN_EXAMPLE)
  return `${lines.join('\n')}\n`
}

function sectionLines(path: readonly string[], section: JsonSchema): string[] {
  const entries = Object.entries(section.properties ?? {})
  const plain = entries.filter(([, value]) => value.properties === undefined)
  const tables = entries.filter(([, value]) => value.properties !== undefined)
  return [
    ...(section.description === undefined ? [] : [`# ${section.description}`]),
    ...(plain.length > 0 ? [`# [${path.join('.')}]`] : []),
    ...plain.flatMap(([name, value]) => keyLines(name, value)),
    ...tables.flatMap(([name, value]) => ['#', ...sectionLines([...path, name], value)]),
  ]
}

function keyLines(name: string, schema: JsonSchema): string[] {
  const words = schema.enum === undefined ? '' : ` One of ${schema.enum.map((value) => String(value)).join(', ')}.`
  const comment = `${schema.description ?? ''}${words}`.trim()
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
  if (value !== null && typeof value === 'object') {
    return `{ ${Object.entries(value)
      .map(([key, inner]) => `${key} = ${toToml(inner)}`)
      .join(', ')} }`
  }
  return JSON.stringify(value)
}

const PLAN_EXAMPLE = [
  '# Plans beside the built-in five (sluice plan list).',
  '# [plans.custom]',
  '# unitsPerSecond = 1000',
  '# sendsPerSecond = 200',
  '# wsConnections = 100',
  '# wsSubscriptions = 50000',
  '# grpcStreams = "unlimited"',
  '# grpcAccountsPerStream = 5000',
]
