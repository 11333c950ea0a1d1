/**
 * Compiles only where a schema and the type that the code uses say the same. Schemas stand beside the types instead of under them because types
 * are read by people and used in hot paths, and schemas only by the documents and the tests.
 */
export type Same<Schema, Type> = [Schema] extends [Type] ? ([Type] extends [Schema] ? true : false) : false

export function same<_Proof extends true>(): void {}
