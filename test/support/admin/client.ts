import { spawnSync } from 'node:child_process'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../../..')

type Schema = {
  readonly $ref?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly type?: string | readonly string[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
}
type Content = { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
type Parameter = { readonly name: string; readonly in: string; readonly schema: Schema }
type Described = {
  readonly operationId: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: Content
  readonly responses: Readonly<Record<string, Content>>
}
type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}
type Operation = { readonly id: string; readonly method: string; readonly path: string }

const document = JSON.parse(readFileSync(join(root, 'docs/openapi/admin.json'), 'utf8')) as Document
const DESCRIBED = Object.values(document.paths).flatMap((methods) => Object.values(methods))

/** The operations of docs/openapi/admin.json. */
export const OPERATIONS: readonly Operation[] = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { operationId }]) => ({ id: operationId, method: method.toUpperCase(), path })),
)

/** The TypeScript type of a schema, of the kinds that the document uses. */
function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) return schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1)
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (schema.anyOf !== undefined) return schema.anyOf.map((each) => `(${typeOf(each)})`).join(' | ')
  if (typeof schema.type === 'object') return schema.type.map((type) => `(${typeOf({ ...schema, type })})`).join(' | ')
  if (schema.type === 'array') return `(${typeOf(schema.items ?? {})})[]`
  if (schema.type === 'integer') return 'number'
  if (schema.type !== 'object') return schema.type ?? 'unknown'
  const { properties = {}, required = [], additionalProperties = true } = schema
  const members = Object.entries(properties).map(
    ([name, each]) => `${JSON.stringify(name)}${required.includes(name) ? '' : '?'}: ${typeOf(each)}`,
  )
  const isOpen = additionalProperties !== false
  return `{ ${[...members, ...(isOpen ? ['[more: string]: unknown'] : [])].join('; ')} }`
}

function contentOf({ content }: Content): string {
  const kinds = Object.entries(content).map(([kind, { schema }]) => `${JSON.stringify(kind)}: ${typeOf(schema)}`)
  return `{ content: { ${kinds.join('; ')} } }`
}

function operationType({ operationId, parameters = [], requestBody, responses }: Described): string {
  const of = (place: string) => {
    const members = parameters.filter((each) => each.in === place)
    const shown = members.map(({ name, schema }) => `${name}${place === 'path' ? '' : '?'}: ${typeOf(schema)}`)
    return `${place}?: ${shown.length === 0 ? 'never' : `{ ${shown.join('; ')} }`}`
  }
  const replies = ['200', '201'].flatMap((status) =>
    responses[status] === undefined ? [] : [`${status}: ${contentOf(responses[status])}`],
  )
  const body = requestBody === undefined ? 'requestBody?: never' : `requestBody: ${contentOf(requestBody)}`
  return `${operationId}: { parameters: { ${of('path')}; ${of('query')} }; ${body}; responses: { ${replies.join('; ')} } }`
}

function printTypes(): string {
  const schemas = Object.entries(document.components.schemas).map(
    ([name, schema]) => `export type ${name} = ${typeOf(schema)}`,
  )
  return `${schemas.join('\n')}\nexport type operations = {\n${DESCRIBED.map(operationType).join('\n')}\n}\n`
}

/** A client that takes its parameters, bodies and responses from the generated types. */
const CLIENT = `
import type { operations } from './schema.ts'

type Part<T, Name extends string> = T extends { [K in Name]?: infer P } ? P : never
type Json<T> = T extends { content: { 'application/json': infer B } } ? B : never
type Responses<Id extends keyof operations> = operations[Id]['responses']
type Done<Id extends keyof operations> =
  | Json<Part<Responses<Id>, '201'>>
  | (Responses<Id> extends { 201: unknown } ? never : Json<Part<Responses<Id>, '200'>>)
type Input<Id extends keyof operations> = {
  path?: operations[Id]['parameters']['path']
  query?: operations[Id]['parameters']['query']
  body?: Json<NonNullable<operations[Id]['requestBody']>>
}

const OPERATIONS: { id: string; method: string; path: string }[] = ${JSON.stringify(OPERATIONS)}

export async function call<Id extends keyof operations>(id: Id, input: Input<Id> = {}): Promise<Done<Id>> {
  const operation = OPERATIONS.find((each) => each.id === id)
  if (operation === undefined) throw new Error(id)
  const params = (input.path ?? {}) as Record<string, string>
  const path = operation.path.replaceAll(/\\{(\\w+)\\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
  const query = new URLSearchParams((input.query ?? {}) as Record<string, string>)
  const response = await fetch(process.env['ADMIN_URL'] + path + '?' + query, {
    method: operation.method,
    headers: { authorization: 'Bearer ' + process.env['ADMIN_TOKEN'], 'content-type': 'application/json' },
    ...(input.body === undefined ? {} : { body: JSON.stringify(input.body) }),
  })
  if (!response.ok) throw new Error(id + ' ' + response.status + ' ' + (await response.text()))
  return (await response.json()) as Done<Id>
}
`

const CONFIG = {
  compilerOptions: {
    strict: true,
    noEmit: true,
    target: 'esnext',
    module: 'nodenext',
    lib: ['esnext', 'dom', 'dom.iterable'],
    types: ['node'],
    allowImportingTsExtensions: true,
    exactOptionalPropertyTypes: true,
  },
  include: ['*.ts'],
}

/** Writes the types that the document describes, the client, and a program that uses it. */
export function writeAdminClient(folder: string, program: string): void {
  writeFileSync(join(folder, 'schema.ts'), printTypes())
  writeFileSync(join(folder, 'client.ts'), CLIENT)
  writeFileSync(join(folder, 'program.ts'), program)
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(CONFIG))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
}

/** The errors of the compiler. */
export function compile(folder: string): string {
  const { stdout, stderr } = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', folder], { encoding: 'utf8' })
  return stdout + stderr
}
