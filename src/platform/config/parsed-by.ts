import type { z } from 'zod'
import { ServiceError } from '../../core/error.ts'

/** A check of a text that its reader at the start would refuse: what is wrong is reported with the key and its line, in the words of the reader. */
export function parsedBy(parse: (text: string) => unknown) {
  return (text: string, context: z.core.$RefinementCtx<string>): void => {
    try {
      parse(text)
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      const { message, fix } = error
      context.addIssue({ code: 'custom', message: fix === undefined ? message : `${message}. ${fix}` })
    }
  }
}
