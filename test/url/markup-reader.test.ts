/*
 * What of a page is its own: drawings, formulas, templates, scripts and comments are not, whatever their
 * tags are called. Judged by parse5's tree builder, which the reader does without.
 */
import * as fc from 'fast-check'
import { html, parse, type DefaultTreeAdapterTypes as Tree } from 'parse5'
import { describe, expect, it } from 'vitest'
import { MarkupReader } from '../../src/url/markup-reader.js'

/** What is told of a page, as text: `<name>`, text, `</name>`; of a <meta> also its name. */
function told(slices: readonly string[], options?: { isXml: boolean }): string {
  let text = ''
  const listener = {
    element(name: string, attribute: (name: string) => string | null) {
      text += name === 'meta' ? `<meta ${attribute('name')}>` : `<${name}>`
    },
    text(some: string) {
      text += some
    },
    end(name: string) {
      text += `</${name}>`
    },
  }
  const reader = new MarkupReader(listener, options)
  for (const slice of slices) reader.write(slice)
  reader.end()
  return text.replaceAll(/ +/g, ' ')
}

/** The titles and <meta> alone. */
const fieldsIn: (...page: Parameters<typeof told>) => string[] = (...page) =>
  told(...page).match(/<title>.*?<\/title>|<meta \w+>/g) ?? []

describe('markup', () => {
  it.each([
    ['<title>Page</title>', '<title>Page</title>'],
    ['<TITLE LANG=x>A &amp;amp; B</TITLE>', '<title>A &amp; B</title>'],
    ['<title>a<b>b</title>', '<title>a<b>b</title>'],
    ['<title>a', '<title>a'],
    ['<title>a<!-- b --></title>', '<title>a<!-- b --></title>'],
    ['a <!-- <b> --> c', 'a c'],
    ['a\n\t b', 'a b'],
    ['<meta name="a" name="b">', '<meta a>'],
    ['<meta NAME = a&quot;b>', '<meta a"b>'],
    ['<meta name>', '<meta >'],
    ['<meta>', '<meta null>'],
    ['<meta name=a', ''],
    ['<meta name="a>b', ''],
    ['x</b>y', 'x</b>y'],
    ['a\0b', 'ab'],
    ['<svg></svg><![CDATA[x>y', 'y'],
  ])('%s is told as %s', (markup, is) => {
    expect(told([markup])).toBe(is)
  })

  it.each([
    '<script>if (a < b) "<meta name=a>"</script>',
    '<script><!-- <script> </script> --> <title>x</title></script>',
    '<style><title>x</title></style>',
    '<textarea><title>x</title></textarea>',
    '<noscript><meta name=a><h1>x</h1></noscript>',
    '<iframe><title>x</title></iframe>',
    '<xmp><meta name=a></xmp>',
    '<noframes><title>x</title></noframes>',
    '<noembed><title>x</title></noembed>',
    '<template><title>x</title></template>',
    '<template><template></template><meta name=a></template>',
    '<template><svg></template>',
    '<template></svg></p><meta name=a></template>',
    '<template><script>"</template>"</script><meta name=a></template>',
    '<svg><title>Icon</title></svg>',
    '<svg/>',
    '<svg viewBox="0 0 1 1" />',
    '<svg><title/></svg>',
    '<svg><style><title>x</title></style></svg>',
    '<svg><script>"<title>x</title>"</script></svg>',
    '<svg><svg><title>Icon</title></svg><title>Icon</title></svg>',
    '<svg><g><desc><meta name=a></desc></g><title>Icon</title></svg>',
    '<svg><foreignObject><title>x</title><p>y</p></foreignObject><title>z</title></svg>',
    '<svg><foreignobject><svg><title>x</title></svg><meta name=a></foreignobject></svg>',
    '<svg><![CDATA[ > </svg><title>x</title>]]></svg>',
    '<svg><desc><template></svg></template><title>x</title></desc></svg>',
    '<svg><title>Icon</svg>',
    '<math><mi>x</mi><mtext><p>y</p></mtext></math>',
    '<math><title>x</title></math>',
    '<math><annotation-xml encoding="TEXT/HTML"><p><meta name=a></p></annotation-xml></math>',
    '<math><annotation-xml><svg><desc><p></p></desc></svg></annotation-xml></math>',
  ])('%s is nothing of the page', (markup) => {
    expect(fieldsIn([`<b>${markup}<title>Page</title>`])).toEqual(['<title>Page</title>'])
  })

  it.each([
    ['<svg><path><p><title>Page</title>', '<p><title>Page</title>'],
    ['<svg><g><font color=red><title>Page</title>', '<font><title>Page</title>'],
    ['<svg><g><font><title>Icon</title>', ''],
    ['<svg></p><title>Page</title>', '<title>Page</title>'],
    ['<math><mrow><div>x', '<div>x'],
    ['<svg><foreignObject><p>x</foreignObject></svg>y', 'y'],
  ])('a drawing that is not closed ends where the standard ends it: %s', (markup, is) => {
    expect(told([markup])).toBe(is)
  })
})

describe('XHTML', () => {
  const isXml = true

  it.each([
    ['<title/>x', '<title></title>x'],
    ['<title>A<![CDATA[ & <B>]]></title>', '<title>A & <B></title>'],
    ['<script>a &lt; b <i>x</i></script>y', '<script></script>y'],
    ['<script><![CDATA[ "</script>" ]]></script>y', '<script></script>y'],
    ['<svg/><template/>y', '<template></template>y'],
    ['<noscript><meta name="a"/></noscript>y', '<noscript></noscript>y'],
  ])('%s is told as %s', (markup, is) => {
    expect(told([markup], { isXml })).toBe(is)
  })

  it.each(['script', 'style', 'textarea', 'iframe', 'noscript', 'template', 'svg', 'title'])(
    'goes on behind an empty <%s/>, where HTML would not',
    (name) => {
      const markup = `<${name}/><meta name="a"/>`
      expect(fieldsIn([markup], { isXml })).toContain('<meta a>')
      expect(fieldsIn([markup]).includes('<meta a>')).toBe(name === 'svg')
    },
  )
})

describe('a page in slices', () => {
  const tokens = [
    '<svg> </svg> <svg/> <title> </title> <meta\tname="a&amp;b"> <p> </p> <template> </template>',
    '<script> </script> <!-- --> <![CDATA[ ]]> &amp; &notin; &#x1F600; & \r\n \r 😀 é \0 < </',
    '<textarea> </textarea> <math> <mi> </mi> </math> <noscript> " \' x',
  ].flatMap((line) => line.split(' '))
  const soup = fc.array(fc.constantFrom(...tokens), { maxLength: 40 }).map((some) => some.join(''))

  it('is told as if it came in one piece', () => {
    fc.assert(
      fc.property(soup, fc.integer({ min: 1, max: 9 }), fc.boolean(), (markup, length, isXml) => {
        const slices = markup.match(new RegExp(`[^]{1,${length}}`, 'g')) ?? []
        expect(told(slices, { isXml })).toBe(told([markup], { isXml }))
      }),
      { numRuns: 2000 },
    )
  })

  it('is told no further once its reader is stopped', () => {
    const names: string[] = []
    const reader = new MarkupReader({
      element(name) {
        names.push(name)
        if (name === 'b') reader.stop()
      },
      text() {},
      end() {},
    })
    reader.write('<a><b><c>')
    expect(reader.isStopped).toBe(true)
    reader.write('<d>')
    reader.end()
    expect(names).toEqual(['a', 'b'])
  })

  it('nested deeper than any author goes is told no further', () => {
    for (const tag of ['<svg>', '<template>', '<math><mi>', '<svg><desc>']) {
      const end = '</svg></template></mi></math></desc></svg>'
      expect(fieldsIn([tag.repeat(40), end.repeat(40), '<title>x</title>'])).toHaveLength(1)
      expect(fieldsIn([tag.repeat(200), end.repeat(200), '<title>x</title>'])).toHaveLength(0)
    }
  })
})

describe('a page that is nested well', () => {
  const inner = (tag: string, content: fc.Arbitrary<string>, attributes = '') =>
    content.map((text) => `<${tag}${attributes}>${text}</${tag}>`)
  const { page } = fc.letrec<Record<'page' | 'svg' | 'math', string>>((tie) => {
    const [some, svg, math] = ['page', 'svg', 'math'].map((name) =>
      fc.array(tie(name as 'page'), { maxLength: 4 }).map((parts) => parts.join('')),
    ) as [fc.Arbitrary<string>, fc.Arbitrary<string>, fc.Arbitrary<string>]
    return {
      page: fc.oneof(
        { maxDepth: 5, depthIdentifier: 'page' },
        fc.constantFrom('<title>A</title>', '<meta name=a>', '<svg/>', '<!-- <title> -->', '&lt;'),
        fc.constantFrom('<script>"<meta name=b>"</script>', '<noscript><meta name=c></noscript>'),
        fc.constantFrom('<textarea><title>B</title></textarea>', '<svg />', 'x'),
        ...['template', 'section', 'x-y', 'b'].map((tag) => inner(tag, some)),
        inner('svg', svg),
        inner('math', math),
      ),
      svg: fc.oneof(
        { maxDepth: 5, depthIdentifier: 'page' },
        fc.constantFrom('<title>C</title>', '<path/>', '<title/>', '<style>.x{}</style>', 'y'),
        ...['g', 'svg', 'math'].map((tag) => inner(tag, svg)),
        ...['desc', 'title', 'foreignObject'].map((tag) => inner(tag, some)),
      ),
      math: fc.oneof(
        { maxDepth: 5, depthIdentifier: 'page' },
        fc.constantFrom('<title>D</title>', '<mspace/>', '<link/>', 'z'),
        ...['mrow', 'math', 'annotation-xml'].map((tag) => inner(tag, math)),
        ...['mi', 'mtext'].map((tag) => inner(tag, some)),
        inner('annotation-xml', some, ' encoding="text/html"'),
        inner('annotation-xml', inner('svg', svg)),
      ),
    }
  })

  it('has the titles and <meta> that a tree builder finds, in their order', () => {
    fc.assert(
      fc.property(fc.array(page, { maxLength: 5 }), (parts) => {
        const markup = `<!doctype html><body>${parts.join('')}`
        expect(fieldsIn([markup])).toEqual(fieldsOf(parse(markup)))
      }),
      { numRuns: 3000 },
    )
  })
})

function fieldsOf(parent: Tree.ParentNode): string[] {
  return parent.childNodes.flatMap((node) => {
    if (!('tagName' in node) || node.namespaceURI !== html.NS.HTML) return []
    const [first] = node.childNodes
    if (node.tagName === 'title') {
      return [`<title>${first !== undefined && 'value' in first ? first.value : ''}</title>`]
    }
    return node.tagName === 'meta' ? [`<meta ${node.attrs[0]?.value}>`] : fieldsOf(node)
  })
}
