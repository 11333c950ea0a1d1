import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { CopyButton } from '../../../ui/copy-button.tsx'
import { goTo } from '../go-to.ts'

/** A side panel over the live page. Escape and the close button close it; focus returns to the previous element. */
export function Drawer({ title, children }: { title: ComponentChildren; children: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null)
  // Before the drawer is visible: focus that moved later would take it from what the user does next, such as typing in the search.
  useLayoutEffect(() => {
    const before = document.activeElement
    heading.current?.focus()
    const close = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !event.defaultPrevented) goTo({ view: 'live' })
    }
    addEventListener('keydown', close)
    return () => {
      removeEventListener('keydown', close)
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  return (
    <aside class="drawer" aria-labelledby="drawer-title">
      <header>
        <h2 id="drawer-title" ref={heading} tabIndex={-1}>
          {title}
        </h2>
        <CopyButton class="quiet-button" text={() => location.href} done="Link copied">
          Copy link
        </CopyButton>
        <button type="button" class="close" aria-label="Close" onClick={() => goTo({ view: 'live' })}>
          ✕
        </button>
      </header>
      <div class="drawer-body">{children}</div>
    </aside>
  )
}
