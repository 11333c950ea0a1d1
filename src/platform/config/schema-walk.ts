import type { z } from 'zod'
import type { KeyPath } from './toml-positions.ts'

/**
 * Inspects a schema without validating: the keys of an object and the schemas below them. Only types of the library are
 * imported, so a command that reads no config does not load it.
 */
export type AnySchema = z.core.$ZodType

type Definition = {
  type: string
  shape?: Record<string, AnySchema>
  innerType?: AnySchema
  element?: AnySchema
  valueType?: AnySchema
  in?: AnySchema
  out?: AnySchema
  getter?: () => AnySchema
  options?: readonly AnySchema[]
  left?: AnySchema
  right?: AnySchema
}

const DEPTH_MAX = 32

/** The keys an object of this schema may have; empty for anything that is not an object with known keys. */
export function keysOf(schema: AnySchema): string[] {
  const keys = new Set<string>()
  for (const definition of cases(schema)) for (const key of Object.keys(definition.shape ?? {})) keys.add(key)
  return [...keys]
}

/** The schema below a key; undefined when there is none. Records take any key. */
export function childOf(schema: AnySchema, key: string | number): AnySchema | undefined {
  for (const definition of cases(schema)) {
    const child = definition.shape?.[String(key)] ?? definition.element ?? definition.valueType
    if (child) return child
  }
  return undefined
}

export function schemaAt(schema: AnySchema, path: KeyPath): AnySchema | undefined {
  let found: AnySchema | undefined = schema
  for (const key of path) found = found && childOf(found, key)
  return found
}

/** Whether this schema accepts only text: then text is not parsed as a number or a date. */
export function wantsText(schema: AnySchema): boolean {
  const types = cases(schema).map(({ type }) => type)
  return types.length > 0 && types.every((type) => ['string', 'enum', 'literal', 'template_literal'].includes(type))
}

/** Whether the schema accepts any key. */
export function takesAnyKey(schema: AnySchema): boolean {
  return cases(schema).some(({ type }) => type === 'record' || type === 'any' || type === 'unknown')
}

/** The definitions that remain once wrappers and unions are resolved. */
function cases(schema: AnySchema, depth = 0): Definition[] {
  const definition = schema._zod.def as unknown as Definition
  if (depth > DEPTH_MAX) return []
  const inner = (next: AnySchema | undefined) => (next ? cases(next, depth + 1) : [])
  switch (definition.type) {
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
    case 'nonoptional':
    case 'catch':
    case 'readonly':
      return inner(definition.innerType)
    case 'pipe':
      return inner(definition.in)
    case 'lazy':
      return inner(definition.getter?.())
    case 'union':
      return (definition.options ?? []).flatMap((option) => inner(option))
    case 'intersection':
      return [...inner(definition.left), ...inner(definition.right)]
    default:
      return [definition]
  }
}
