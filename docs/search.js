// The search of the site: finds codes exactly and sections by their headings, and ranks pages by their shelf.

var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 30,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,

  // What a reader does comes before what a command takes, and before how it works inside.
  score: ([page, , , , score, , kind]) => {
    // 100 is the whole code. The index terms of docs/conf.py are codes, no words of readers.
    if (kind === SearchResultKind.index && score < 100) return 0;
    if (page.startsWith("inside/")) return score * 0.5;
    return /^(reference|commands)\/|^(api|consequences|glossary)$/.test(page) ? score * 0.7 : score;
  },
};

// Sphinx ranks a page that has all words anywhere like one that answers them. These rank lowest here.
const searchPages = Search.performTermsSearch;

Search.performTermsSearch = (terms, excluded) => {
  const pages = searchPages(terms, excluded);
  pages.forEach((page) => (page[4] /= Scorer.title / Scorer.term));
  return [...searchHeadings(new URLSearchParams(window.location.search).get("q")), ...pages];
};

// Returns the sections whose headings have more than half of the words that any heading has, by how rare these are.
const searchHeadings = (query) => {
  const { alltitles, docnames, filenames, titles } = Search._index;
  const stemmer = new Stemmer();
  const stems = (text) =>
    new Set(
      splitQuery(text.toLowerCase())
        .filter((word) => !stopwords.has(word))
        .map((word) => stemmer.stemWord(word)),
    );
  const headings = Object.entries(alltitles).map(([heading, places]) => [heading, places, stems(heading)]);
  const counts = new Map();
  headings.forEach(([, , words]) => words.forEach((word) => counts.set(word, (counts.get(word) || 0) + 1)));
  const weigh = (words) =>
    [...words].reduce((sum, word) => sum + Math.log((1 + headings.length) / (1 + (counts.get(word) || 0))), 0);

  const wanted = stems(query);
  const known = weigh([...wanted].filter((word) => counts.has(word)));
  const results = [];
  for (const [heading, places, words] of headings) {
    const common = weigh([...words].filter((word) => wanted.has(word)));
    if (common <= known / 2) continue;
    const score = (2 * Scorer.title * common) / (weigh(wanted) + weigh(words));
    for (const [file, anchor] of places) {
      const title = titles[file] === heading ? heading : `${titles[file]} > ${heading}`;
      const place = anchor === null ? "" : `#${anchor}`;
      results.push([docnames[file], title, place, null, score, filenames[file], SearchResultKind.title]);
    }
  }
  return results;
};
