import { spawnSync } from 'node:child_process'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import openapiTS, { astToString } from 'openapi-typescript'

const root = join(import.meta.dirname, '../..')

type Document = { readonly paths: Record<string, Record<string, { readonly operationId: string }>> }
export type Operation = { readonly id: string; readonly method: string; readonly path: string }

const document = JSON.parse(readFileSync(join(root, 'docs/openapi/admin.json'), 'utf8')) as Document

/** The operations of docs/openapi/admin.json. */
export const OPERATIONS: readonly Operation[] = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { operationId }]) => ({ id: operationId, method: method.toUpperCase(), path })),
)

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

/** Writes the types that openapi-typescript makes from the document, the client, and a program that uses it. */
export async function writeAdminClient(folder: string, program: string): Promise<void> {
  const types = astToString(await openapiTS(new URL(`file://${root}/docs/openapi/admin.json`)))
  writeFileSync(join(folder, 'schema.ts'), types)
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
