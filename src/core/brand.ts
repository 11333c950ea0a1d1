declare const brand: unique symbol

/**
 * A value that carries its meaning in its type: `Brand<string, 'SubscriptionId'>` cannot be passed where a token id is
 * wanted. The mark exists for the compiler alone; whoever parses a value puts it on.
 */
export type Brand<Value, Name extends string> = Value & { readonly [brand]: Name }
