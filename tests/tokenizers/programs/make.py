#!/usr/bin/env python3
"""Small tokenizer.json files of many parts, and what the original library makes of some texts.

Usage: make.py programs.json    needs the package `tokenizers` 0.23
"""
import json,sys
from tokenizers import Tokenizer
M="\u2581"
def uni(extra=(),**o):
    v=[["<s>",0.0],["<pad>",0.0],["</s>",0.0],["<unk>",0.0],[M,-2.0],["a",-3.0],["b",-3.5],["e",-3.1],["l",-3.3],["h",-3.7],["o",-3.2],[M+"he",-4.0],["llo",-4.5],[M+"hello",-5.0],["lo",-4.4],["é",-6.0],["1",-5.0],["2",-5.0],["fi",-5.5],["\"",-4.0],[M+M,-9.0],[".",-4.0],["ab",-6.5]]
    v+=list(extra)
    return {"type":"Unigram","unk_id":3,"vocab":v,**o}
def special(*names): return [{"id":i,"content":c,"single_word":False,"lstrip":c=="<mask>","rstrip":False,"normalized":False,"special":True} for i,c in names]
def chars(extra,base="abcdehlo123.,!x"): return {t:i for i,t in enumerate(extra+list(base))}
def bytefb(): return [["<0x%02X>"%b,-20.0] for b in range(256)]
meta=lambda s="always",split=True:{"type":"Metaspace","replacement":M,"prepend_scheme":s,"split":split}
templ=lambda:{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],"pair":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}},{"Sequence":{"id":"B","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],"special_tokens":{"<s>":{"id":"<s>","ids":[0],"tokens":["<s>"]},"</s>":{"id":"</s>","ids":[2],"tokens":["</s>"]}}}
seq=lambda k,*l:{"type":"Sequence",k:list(l)}
N=lambda *l:seq("normalizers",*l)
P=lambda *l:seq("pretokenizers",*l)
D=lambda *l:seq("decoders",*l)
rep=lambda a,b:{"type":"Replace","pattern":{"String":a},"content":b}
rex=lambda a,b:{"type":"Replace","pattern":{"Regex":a},"content":b}
strip={"type":"Strip","strip_left":True,"strip_right":True}
texts=["hello hello","  hello\n\nhello  ","","HELLO Hé ﬁ e\u0301","``hello''","a<mask>b  <mask>","xyz <s> hello","a1b22.", "\u6f22\u5b57 hello\u00a0a","ab"*20,"hello \t ab","   ","h\u0301\u0323é","a\r\nb", "e\u0301e\u0301 a\u0323\u0301 o\u0308\u0301\u0302\u0303"]
progs={}
add=lambda name,**f:progs.__setitem__(name,{"version":"1.0","truncation":None,"padding":None,"added_tokens":[],"normalizer":None,"pre_tokenizer":None,"post_processor":None,"decoder":None,**f})
A=special((0,"<s>"),(1,"<pad>"),(2,"</s>"),(3,"<unk>"))
add("unigram after white space",added_tokens=A+special((23,"<mask>")),pre_tokenizer=P({"type":"WhitespaceSplit"},meta()),post_processor=templ(),decoder=meta(),model=uni())
add("unigram of all text",added_tokens=A,normalizer=N(rep(" ",M)),decoder=D({"type":"Replace","pattern":{"String":M},"content":" "},{"type":"Fuse"}),model=uni())
add("unigram of stripped text",added_tokens=A,normalizer=N(strip,rex(" {2,}"," ")),pre_tokenizer=meta(),decoder=meta(),model=uni())
add("unigram at the first word",added_tokens=A,normalizer=N(rex(" {2,}"," ")),pre_tokenizer=meta("first"),decoder=meta("first"),model=uni())
add("unigram in lower case",added_tokens=A,normalizer=N(rep("``",'"'),rep("''",'"'),{"type":"NFKD"},{"type":"StripAccents"},{"type":"Lowercase"}),pre_tokenizer=meta(),decoder=meta(),model=uni())
add("unigram with bytes",added_tokens=A,pre_tokenizer=meta("never"),decoder=D({"type":"ByteFallback"},meta("never")),model=uni(bytefb(),byte_fallback=True))
add("unigram behind other cuts",added_tokens=A,normalizer={"type":"Nmt"},pre_tokenizer=P({"type":"Punctuation","behavior":"Isolated"},{"type":"Digits","individual_digits":True},meta()),decoder=meta(),model=uni())
add("word level",added_tokens=special((0,"[UNK]")),pre_tokenizer={"type":"Whitespace"},model={"type":"WordLevel","unk_token":"[UNK]","vocab":{"[UNK]":0,"hello":1,"a":2,"b":3,"a1b22":4,".":5}})
add("word level, lower case",added_tokens=special((0,"[UNK]")),normalizer={"type":"BertNormalizer","clean_text":True,"handle_chinese_chars":True,"strip_accents":None,"lowercase":True},pre_tokenizer={"type":"Whitespace"},model={"type":"WordLevel","unk_token":"[UNK]","vocab":{"[UNK]":0,"hello":1,"a":2,"b":3,"he":4,"e":5,"\u6f22":6}})
wp={"[UNK]":0,"hel":1,"##lo":2,"a":3,"##b":4,"##a":5,"hello":6,"##1":7,".":8,"e":9,"##2":10,"fi":11,"h":12}
add("wordpiece, other cuts",added_tokens=special((0,"[UNK]")),normalizer=N({"type":"NFKD"},{"type":"Lowercase"},{"type":"StripAccents"}),pre_tokenizer=P({"type":"WhitespaceSplit"},{"type":"Digits","individual_digits":False}),decoder={"type":"WordPiece","prefix":"##","cleanup":True},model={"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":12,"vocab":wp})
bpe=lambda vocab,merges,**o:{"type":"BPE","dropout":None,"unk_token":"<unk>","continuing_subword_prefix":None,"end_of_word_suffix":None,"fuse_unk":False,"byte_fallback":False,"ignore_merges":False,"vocab":vocab,"merges":merges,**o}
add("bpe with ends of words",added_tokens=special((0,"<unk>")),pre_tokenizer={"type":"BertPreTokenizer"},decoder={"type":"BPEDecoder","suffix":"</w>"},model=bpe({t:i for i,t in enumerate(["<unk>","a","b","h","e","l","o","a</w>","b</w>","o</w>","l</w>","lo</w>","he","llo</w>","hello</w>","ab",".</w>"])},[["l","o</w>"],["h","e"],["l","lo</w>"],["he","llo</w>"],["a","b"]],end_of_word_suffix="</w>"))
add("bpe with inner pieces",added_tokens=special((0,"<unk>")),pre_tokenizer={"type":"WhitespaceSplit"},model=bpe({t:i for i,t in enumerate(["<unk>","a","b","h","e","l","o","##a","##b","##e","##l","##o","##lo","he","##llo","hello","ab","aba"])},[["##l","##o"],["h","##e"],["##l","##lo"],["he","##llo"],["a","##b"],["ab","##a"]],continuing_subword_prefix="##"))
add("bpe of whole words, unknown as one",added_tokens=special((0,"<unk>")),normalizer={"type":"NFC"},pre_tokenizer={"type":"Split","pattern":{"Regex":"\\s+"},"behavior":"MergedWithNext","invert":False},decoder={"type":"Fuse"},model=bpe({t:i for i,t in enumerate(["<unk>","a","b","h","e","l","o"," ","lo","hello","é","ab"])},[["l","o"],["a","b"]],fuse_unk=True,ignore_merges=True))
add("bpe without an unknown token",pre_tokenizer={"type":"CharDelimiterSplit","delimiter":"l"},model=bpe({t:i for i,t in enumerate(["a","b","h","e","o"," ","he"," he","ab"])},[["h","e"],[" ","he"],["a","b"]],unk_token=None))
out=[]
for name,t in progs.items():
    tk=Tokenizer.from_str(json.dumps(t))
    cases=[]
    for x in texts:
        try: ids=tk.encode(x,add_special_tokens=False).ids
        except BaseException as e: print(name,repr(x),e); continue
        cases.append({"text":x,"ids":ids,"back":tk.decode(ids,skip_special_tokens=False)})
    out.append({"name":name,"tokenizer":t,"cases":cases})
json.dump(out,open(sys.argv[1],"w"),ensure_ascii=True,separators=(",",":"))
