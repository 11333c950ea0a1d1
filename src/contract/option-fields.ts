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
