import { z } from 'zod'

/** A whole number from `min` to `max`. */
export function integer(min: number, max: number) {
  return z.int().min(min).max(max)
}

/** A section of the configuration file: an unknown key is an error, and a section that is not in the file has its defaults. */
export function section<const Shape extends z.core.$ZodLooseShape>(description: string, shape: Shape) {
  return z
    .strictObject(shape)
    .prefault({} as never)
    .describe(description)
}

type NamedList = {
  readonly key: string
  /** Its path below the value that is checked. */
  readonly path?: readonly string[]
  readonly items: readonly { readonly name: string }[]
}

/** Refuses a name that an earlier item of these lists has, with both places. */
export function refuseSameNames(context: z.core.$RefinementCtx, lists: readonly NamedList[]): void {
  const places = new Map<string, string>()
  for (const { key, path = [], items } of lists) {
    for (const [index, { name }] of items.entries()) {
      const first = places.get(name)
      if (first === undefined) places.set(name, `${key}[${index}]`)
      else {
        const message = `${first} is named ${name} too: give each a name of its own`
        context.addIssue({ code: 'custom', path: [...path, index, 'name'], message })
      }
    }
  }
}
