/**
 * Compiles only if a schema equals the type that the code uses. Types are not inferred from schemas, because types are read by people and used in hot
 * paths, and schemas only by documents and tests.
 */
export type Same<Schema, Type> = [Schema] extends [Type] ? ([Type] extends [Schema] ? true : false) : false

export function same<_Proof extends true>(): void {}
