/** For the code that owns an object whose fields are read-only to all others. */
export type Writable<T> = { -readonly [Name in keyof T]: T[Name] }
