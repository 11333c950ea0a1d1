import { ServiceError } from '../../core/error.ts'

/**
 * Reads the store for the response to a change that is committed; undefined where the store cannot be read now. An error would make the client repeat
 * the change, which is then refused, and a new secret would never be shown.
 */
export async function readBack<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}
